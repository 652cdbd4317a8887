"""Lines of a label and a text: the label is the first word (MR, SUBJ, TREC), or words that begin with `__label__` (fastText).

fastText's labels may be at the end of a line too, and several: the first is used. The prefix is no part of a label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from polyseme.base.errors import FormatError, arg
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.column_names import NUMBER
from polyseme.text.labelled.numbered_lines import Line
from polyseme.text.labelled.table_columns import Record, warn_once

PREFIX = "__label__"
HEADER = ["label", "text"]
_FASTTEXT = re.compile(rf"\s*{PREFIX}\S+ |.*\s{PREFIX}\S+\s*$")
_WORD = re.compile(r"\w+")
_SHARE = 0.95  # of the lines must have a label and a text
_MIN_WORDS = 6  # different first words, from which on they may be those of sentences


def are_label_lines(lines: list[str]) -> bool:
    """Whether (nearly) all lines begin with a word that looks like a label: a number, or one of a few."""
    labels = [line.split(" ", 1)[0] for line in lines if " " in line.rstrip()]
    few = len(set(labels)) * 4 <= len(labels) or all(NUMBER.fullmatch(label) for label in labels)
    return len(labels) >= _SHARE * len(lines) and few


def are_fasttext(lines: list[str]) -> bool:
    """Whether (nearly) all lines begin or end with a label of fastText."""
    return sum(_FASTTEXT.match(line) is not None for line in lines) >= _SHARE * len(lines)


def label_and_text(bad: BadRows, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield a header of our own, then each line split at its first space."""
    yield 1, HEADER
    for number, line in lines:
        if line.strip():
            label, _, text = line.partition(" ")
            yield number, [label, text]


def fasttext(bad: BadRows, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield a header of our own, then the first label of each line and its text without labels."""
    yield 1, HEADER
    total = several = 0
    for number, line in lines:
        if line.strip():
            labels, text = _parted(line)
            total, several = total + 1, several + (len(labels) > 1)
            yield number, [labels[0] if labels else "", text]
    if several:
        which = "the first is used, the others are left out, of the text too"
        warn_once(f"{bad.path}: {several:,} of {total:,} lines have several labels: {which}")


def _parted(line: str) -> tuple[list[str], str]:
    """Return the labels at both ends of a line, and the text between them.

    >>> _parted("__label__a __label__b some text"), _parted("some text __label__c")
    ((['__label__a', '__label__b'], 'some text'), (['__label__c'], 'some text'))
    """
    words = line.split()
    begin = next((number for number, word in enumerate(words) if not word.startswith(PREFIX)), len(words))
    end = next((number for number in range(len(words), begin, -1) if not words[number - 1].startswith(PREFIX)), begin)
    text = line.strip()
    for word in words[:begin]:
        text = text.removeprefix(word).lstrip()
    for word in reversed(words[end:]):
        text = text.removesuffix(word).rstrip()
    return words[:begin] + words[end:], text


def check_first_words(path: str | Path, texts: Sequence[str], labels: Sequence[str]) -> None:
    """Say that the first words are the labels; refuse those that are as frequent inside the texts, as of plain sentences."""
    classes = {label.casefold() for label in labels}
    words = Counter(word for text in texts for word in _WORD.findall(text.casefold()))
    inside = [label for label in classes if words[label]]
    often = sum(words[label] for label in inside) >= len(texts) / 2
    if len(classes) >= _MIN_WORDS and len(inside) > len(classes) / 2 and often and not all(map(NUMBER.fullmatch, classes)):
        shown = ", ".join(dict.fromkeys(labels[:3]))
        problem = f"the first words of the lines ({shown} ...) are words of the texts, too, so they seem to be no labels"
        raise FormatError(path, f"{problem}; give a table with a text and a label, or {arg('format', 'lines')} if they are")
    warn_once(f"{path}: lines: the first word is the label ({len(set(labels)):,} classes)")
