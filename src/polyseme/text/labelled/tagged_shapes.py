"""Tagged sentences in other shapes than columns: JSON lines, which are read, and others, which are named and refused.

A line of JSON is a sentence: `{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}`, or one of the other names that datasets
use; or a text with marked spans (`marked_texts`). CSV, `word/TAG word/TAG` lines and files without empty lines would be read
as nonsense, so that an error says what the file seems to be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, arg, nearest
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.dataset_files import TAGS, WORDS
from polyseme.text.labelled.json_rows import object_lines
from polyseme.text.labelled.marked_texts import TEXT, MarkedTexts, is_marked, sentence_bounds, splitter_for, text_of
from polyseme.text.labelled.numbered_lines import Line, are_strings, cells, is_object, json_object

EXPECTED = "expected a word and a tag per line, separated by a tab or a space, and an empty line between sentences"
_SHAPES = ('{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}', '{"text": "Ann ran", "entities": [[0, 3, "PER"]]}')
JSON_EXPECTED = f"expected {' or '.join(_SHAPES)} on each line"
_HEAD = 200  # lines by which a shape is recognised
_MOST = 0.9  # of them have it
_JOINED = {separator: re.compile(rf".+{separator}[^{separator}]+") for separator in "/_"}
_WORD_COLUMNS = {"word", "words", "token", "tokens", "form"}


def json_objects(path: str | Path, lines: Sequence[Line]) -> list[Line] | None:
    """Return lines of one JSON object each, or the rows of a JSON document with their numbers; None: it is not JSON."""
    found = list(object_lines(path, lines, (*WORDS, *TEXT), lists=True))
    first = next((line.strip() for _, line in found if line.strip()), "")
    return found if is_object(first) else None


def json_sentences(
    path: str | Path, lines: Sequence[Line], column: int | str | None, bad: BadRows
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the line, the words and the tags of each sentence; `column`: the field of the tags."""

    full = [(number, line) for number, line in lines if line.strip()]
    marked = _marked_texts(path, full)

    def read(number: int, line: str) -> tuple[int, list[str], list[str]]:
        where = f"{path}:{number}"
        row = json_object(where, line)
        if marked is not None:
            return number, *marked.words(where, row)
        words = _field(where, row, WORDS, None)
        tags = _field(where, row, TAGS, None if column is None else str(column))
        if not are_strings(row[words]) or len(row[words]) != len(row[tags]):
            given = f"has {len(row[words])} {words} and {len(row[tags])} {tags}"
            raise FormatError(where, f"{given}; each word is a string and needs a tag")
        return number, ["_".join(word.split()) or "_" for word in row[words]], row[tags]

    for number, words, tags in bad.read_each(full, read):
        if not are_strings(tags):
            what = f"has the tag {next(tag for tag in tags if not isinstance(tag, str))!r}, which is not a name"
            advice = 'write names, such as "B-PER"; in Python, `train` takes a Dataset, whose features have the names'
            raise FormatError(f"{path}:{number}", f"{what}; {advice}")
        for begin, end in sentence_bounds(words, tags) if marked is not None else [(0, len(words))] if words else []:
            yield number, words[begin:end], tags[begin:end]
    if marked is not None:
        marked.report()


def _marked_texts(path: str | Path, lines: Sequence[Line]) -> MarkedTexts | None:
    """Return a reader of texts with marked spans, if the first object is one; None: the objects have words and tags."""
    head = [json.loads(line) for _, line in lines if is_object(line)]
    if not head or not is_marked(head[0]) or any(are_strings(head[0].get(name)) for name in WORDS):
        return None
    return MarkedTexts(path, splitter_for(text_of(row) for row in head if is_marked(row)))


def _field(where: str, row: dict[str, Any], usual: Sequence[str], given: str | None) -> str:
    lists = [name for name, value in row.items() if isinstance(value, list)]
    found = given if given is not None else next((name for name in usual if name in lists), None)
    if found is None:
        what = "tags" if usual is TAGS else "words"
        raise FormatError(where, f"has no list of {what} (fields: {', '.join(map(str, row))}); {JSON_EXPECTED}")
    if found not in lists:
        raise FormatError(where, f"has no list {found!r}{nearest(found, lists)}; {arg('column')} names the field of the tags")
    return found


def refuse_other_shapes(path: str | Path, lines: Sequence[Line]) -> None:
    """Raise an error that says what a file seems to be, if it is CSV or has several words and tags on a line."""
    head = [line for _, line in lines[:_HEAD] if line.strip()]
    if not head:
        return
    names = {name.strip(' "').lower() for name in head[0].split(",")}
    rows = [line for line in head if "," in line and (names & _WORD_COLUMNS or len(cells(line)) == 1)]
    if len(names) > 1 and len(rows) >= _MOST * len(head):
        raise FormatError(path, f"seems to be CSV (it begins with {head[0][:30]!r}); {EXPECTED}")
    words = [word for line in head for word in cells(line)]
    for separator, joined in _JOINED.items():
        if len(words) > len(head) and sum(bool(joined.fullmatch(word)) for word in words) >= _MOST * len(words):
            given = f"seems to have words with their tags, such as {words[0][:30]!r}, on each line"
            raise FormatError(path, f"{given}: separate them at {separator!r}; {EXPECTED}")
