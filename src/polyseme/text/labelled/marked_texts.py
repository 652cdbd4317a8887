"""Texts with marked spans of characters, as annotation tools write them, as words with tags.

    {"text": "Ann ran", "entities": [[0, 3, "PER"]]}                          spaCy; doccano, in the field label
    ["Ann ran", {"entities": [[0, 3, "PER"]]}]                                spaCy 2
    {"text": "Ann ran", "spans": [{"start": 0, "end": 3, "label": "PER"}]}    Prodigy; doccano: start_offset, end_offset
    {"text": "Ann ran", "label": {"PER": {"Ann": [[0, 2]]}}}                  CLUENER: the last character, not the one after it

Texts in scripts without spaces, such as Chinese, become characters, others words. A word is cut where a span begins or ends
within it. Of spans that overlap, the one that begins first is kept, of several the longest. A long text becomes sentences.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, PolysemeError, nearest
from polyseme.text.labelled.field_names import BEGIN, END, KIND, MARKED, SPANS, TEXT, WORDS
from polyseme.text.labelled.numbered_lines import are_strings
from polyseme.text.script import MOSTLY, ScriptProfile
from polyseme.text.splitting.characters import split_characters
from polyseme.text.splitting.english import split_english
from polyseme.text.splitting.offsets import CharSpan, word_offsets, words_within

_log = logging.getLogger(__name__)
Mark = tuple[int, int, str]
"""The first character of a span, the one after the last, and its kind."""
REJECTED = ("reject", "ignore")
"""Answers of annotators (Prodigy) by which a row is no example."""
LONG = 100
"""More words than a sentence has: they are several."""
_ENDS = frozenset(".!?。！？")
_SAMPLE = 100  # rows whose fields a message names
_UNSPACED = ("Han", "kana", "Thai", "Lao", "Burmese", "Khmer")


def has_words(row: Mapping[str, Any]) -> bool:
    """Whether an object has a list of words."""
    return any(are_strings(row.get(name)) for name in WORDS)


def is_marked(row: Mapping[str, Any]) -> bool:
    """Whether an object has a text and a list of its spans."""
    return _first(row, TEXT, str) is not None and _first(row, SPANS, list, dict) is not None


def sentence_bounds(words: Sequence[str], tags: Sequence[str]) -> list[CharSpan]:
    """Return where the sentences of a text begin and end, in words; a text that is not long is one.

    >>> sentence_bounds(["So", "it", "is", "."] * 30, ["O"] * 120)[:3]
    [(0, 4), (4, 8), (8, 12)]
    """
    ends = [number for number, word in enumerate(words, 1) if word in _ENDS] if len(words) > LONG else []
    bounds = [0, *(end for end in ends if end < len(tags) and not tags[end].startswith("I-")), len(words)]
    return list(pairwise(bounds)) if words else []


class MarkedTexts:
    """Reads the rows of one file; `field`: that of the spans. Default: the first known one that has any in some row."""

    def __init__(self, path: str | Path, rows: Sequence[Mapping[str, Any]], field: str | None = None) -> None:
        self._path, self._field = path, field or _field_of_spans(rows)
        if not any(isinstance(row.get(self._field), list | dict) for row in rows):
            fields = sorted({str(name) for row in rows[:_SAMPLE] for name in row})
            raise FormatError(path, f"has no spans in a field {field!r}{nearest(str(field), fields)}")
        shares = ScriptProfile.of_lines(text_of(row) for row in rows).shares
        unspaced = sum(shares.get(name, 0.0) for name in _UNSPACED) >= MOSTLY
        self._split: Callable[[str], list[str]] = split_characters if unspaced else split_english
        self._overlapping = 0

    def words(self, where: str, row: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Return the words of a text and their tags.

        >>> row = {"text": "In New York, 5km off", "entities": [[3, 11, "LOC"], [13, 14, "NUMBER"]]}
        >>> MarkedTexts("a.jsonl", [row]).words("a.jsonl:1", row)
        (['In', 'New', 'York', ',', '5', 'km', 'off'], ['O', 'B-LOC', 'I-LOC', 'O', 'B-NUMBER', 'O', 'O'])
        """
        given = row.get(self._field)
        if _first(row, TEXT, str) is None or not isinstance(given, list | dict):
            raise FormatError(where, f"has no text, or no spans in {self._field!r} (fields: {', '.join(map(str, row))})")
        text = text_of(row)
        marks = self._apart(_marks(where, text, given))
        try:
            words, spans = self._cut(text, marks)
        except PolysemeError as error:
            raise FormatError(where, str(error)) from error
        tags = ["O"] * len(words)
        for begin, end, kind in marks:
            for number, word in enumerate(words_within(spans, begin, end)):
                tags[word] = f"{'I' if number else 'B'}-{kind}"
        return ["_".join(word.split()) or "_" for word in words], tags

    def report(self) -> None:
        """Say how many spans were left out."""
        if self._overlapping:
            what = "span that overlaps others is" if self._overlapping == 1 else "spans that overlap others are"
            _log.warning("%s: %s %s left out", self._path, f"{self._overlapping:,}", what)

    def _apart(self, marks: list[Mark]) -> list[Mark]:
        kept: list[Mark] = []
        for mark in sorted(dict.fromkeys(marks), key=lambda mark: (mark[0], -mark[1])):
            if kept and mark[0] < kept[-1][1]:
                self._overlapping += 1
            else:
                kept.append(mark)
        return kept

    def _cut(self, text: str, marks: Sequence[Mark]) -> tuple[list[str], list[CharSpan]]:
        """Split a text into words, and these where a span begins or ends."""
        bounds = sorted({bound for begin, end, _ in marks for bound in (begin, end)})
        words, spans = list[str](), list[CharSpan]()
        split = self._split(text)
        for word, (begin, end) in zip(split, word_offsets(split, text), strict=True):
            inside = bounds[bisect_right(bounds, begin) : bisect_left(bounds, end)]
            pieces = list(zip([begin, *inside], [*inside, end], strict=True))
            words += [text[first:last] for first, last in pieces] if inside else [word]
            spans += pieces
        return words, spans


def text_of(row: Mapping[str, Any]) -> str:
    """Return the text of a row; empty if it has none."""
    return str(row.get(_first(row, TEXT, str) or "", ""))


def _field_of_spans(rows: Sequence[Mapping[str, Any]]) -> str:
    marked = [row for row in rows if is_marked(row)]
    filled = next((name for name in SPANS if any(isinstance(row.get(name), list | dict) and row[name] for row in marked)), None)
    return filled or next((found for row in marked if (found := _first(row, SPANS, list, dict))), SPANS[0])


def _marks(where: str, text: str, given: Any) -> list[Mark]:
    """Return the spans of a text, without white space around them."""
    marks = []
    for begin, end, kind in _by_kind(where, given) if isinstance(given, dict) else _listed(where, text, given):
        if not 0 <= begin < end <= len(text):
            raise FormatError(where, f"has a span from {begin} to {end}, but its text has {len(text)} characters")
        marked = text[begin:end]
        begin, end = begin + len(marked) - len(marked.lstrip()), end - len(marked) + len(marked.rstrip())
        if begin < end:
            marks.append((begin, end, "_".join(kind.split()) or "_"))
    return marks


def _by_kind(where: str, given: Mapping[str, Any]) -> Iterator[Mark]:
    for kind, texts in given.items():
        for places in texts.values() if isinstance(texts, dict) else [texts]:
            if not isinstance(places, list) or not all(_are_numbers(place) for place in places):
                raise FormatError(where, f'has {kind!r} without spans; expected {{"{kind}": {{"a name": [[0, 5]]}}}}')
            yield from ((begin, end + 1, kind) for begin, end in places)


def _listed(where: str, text: str, given: Sequence[Any]) -> Iterator[Mark]:
    for span in given:
        if isinstance(span, dict):
            yield _object(where, text, span)
        elif isinstance(span, list) and len(span) >= 3 and _are_numbers(span[:2]) and isinstance(span[2], str):
            yield span[0], span[1], span[2]
        else:
            raise FormatError(
                where, f'has the span {str(span)[:40]}; expected [0, 5, "PER"] or the fields start, end and label'
            )


def _object(where: str, text: str, span: Mapping[str, Any]) -> Mark:
    """Return a span that is an object; its end is the last character if its own text says so."""
    inner = {name: value for each in span.values() if isinstance(each, dict) for name, value in each.items()}
    fields = {**inner, **span}
    begin, end, kind = _first(fields, BEGIN, int), _first(fields, END, int), _kind(fields)
    if begin is None or end is None or kind is None:
        given = ", ".join(f"{name} ({type(value).__name__})" for name, value in span.items())
        raise FormatError(where, f"has a span with the fields {given}; expected start and end as numbers, and label as a name")
    first, last = fields[begin], fields[end]
    marked = next((fields[name] for name in MARKED if isinstance(fields.get(name), str) and fields[name] in text), None)
    if marked is None or text[first:last].strip() == marked.strip():
        return first, last, kind
    if text[first : last + 1] == marked:
        return first, last + 1, kind
    found = f"characters {first} to {last} are {text[first:last]!r}"
    raise FormatError(where, f"has the span {marked!r}, but {found}: offsets must count characters, not bytes or UTF-16 units")


def _kind(fields: Mapping[str, Any]) -> str | None:
    """Return the label of a span, also from a list of one (Label Studio)."""
    labels = fields.get("labels")
    if are_strings(labels) and len(labels) == 1:
        return labels[0]
    name = _first(fields, KIND, str)
    return None if name is None else str(fields[name])


def _first(fields: Mapping[str, Any], names: Sequence[str], *kinds: type) -> str | None:
    return next((name for name in names if isinstance(fields.get(name), kinds)), None)


def _are_numbers(place: Any) -> bool:
    return (
        isinstance(place, list)
        and len(place) == 2
        and all(isinstance(each, int) and not isinstance(each, bool) for each in place)
    )
