"""Files of tagged words, recognised where a table or plain texts are expected."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from polyseme.text.labelled.numbered_lines import cells

_MIN_SHARE = 0.9  # of the lines end in a tag
_SPAN_TAG = re.compile(r"O|[BIESMLUW]-\S+")
_WORD_TAGS = {"B", "M", "E", "S", "I", "O"}
"""Tags without a type, of words by their characters."""


def tagged_line(lines: Iterable[str]) -> str:
    """Return the first of lines that are a word and its tag of a span each, as in CoNLL files; empty: they are not.

    >>> tagged_line(["吴 B-NAME", "重 E-NAME", "", "， O"]), tagged_line(["a plan B-1", "all of it O", "O"])
    ('吴 B-NAME', '')
    """
    full = [(line, row) for line in lines if not line.startswith("#") and (row := cells(line)) and row[0] != "-DOCSTART-"]
    width, most = Counter(len(row) for _, row in full).most_common(1)[0] if full else (0, 0)
    tags = {row[-1] for _, row in full if len(row) == width}
    tagged = [line for line, row in full if len(row) == width > 1 and _SPAN_TAG.fullmatch(row[-1])]
    are_spans = bool(tags - {"O"}) and len(tagged) >= _MIN_SHARE * len(full)
    are_words = width == 2 and most >= _MIN_SHARE * len(full) and len(tags) > 2 and tags <= _WORD_TAGS
    return full[0][0] if are_spans or are_words else ""
