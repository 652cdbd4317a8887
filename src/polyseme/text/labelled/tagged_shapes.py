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
from polyseme.text.labelled.field_names import TAGS, TEXT, WORDS
from polyseme.text.labelled.json_rows import is_text_with_object, object_lines
from polyseme.text.labelled.marked_texts import REJECTED, MarkedTexts, has_words, is_marked, sentence_bounds
from polyseme.text.labelled.numbered_lines import Line, are_strings, cells, is_object, json_object, without_comma

EXPECTED = "expected a word and a tag per line, separated by a tab or a space, and an empty line between sentences"
_SHAPES = ('{"tokens": ["Ann", "ran"], "tags": ["B-PER", "O"]}', '{"text": "Ann ran", "entities": [[0, 3, "PER"]]}')
JSON_EXPECTED = f"expected {' or '.join(_SHAPES)} on each line"
_NO_TAGS = f"{EXPECTED} (texts without tags are for `predict`)"
_HEAD = 200  # lines by which a shape is recognised
_MIN_SHARE = 0.9  # have the shape
_JOINED = {separator: re.compile(rf".+{separator}[^{separator}]+") for separator in "/_"}
_SENTENCE_END = re.compile(r"\w[.!?。！？]+[\"'”’)]*\s*$")
_PROSE_WORDS = 6  # on a line of plain text; columns of words with tags are fewer, or all lines have them
_LONGEST = 20_000  # characters of a word with its tags
WORD_COLUMNS = {"word", "words", "token", "tokens", "form", "词", "字"}
"""Names of a column of words, in lower case."""


def json_objects(path: str | Path, lines: Sequence[Line], word_column: int | str | None = None) -> list[Line] | None:
    """Return lines of one JSON object each, or the rows of a JSON document with their numbers; None: it is not JSON.

    `word_column`: the field of the words, if it has another name than the well-known ones.
    """
    words = (*WORDS, word_column) if isinstance(word_column, str) else WORDS
    found = [(number, _as_object(line)) for number, line in object_lines(path, lines, (*words, *TEXT), lists=words)]
    full = [line for _, line in found if line.strip()]
    if full and is_object(full[0]):
        return found
    begins = next((line.lstrip() for _, line in lines if line.strip()), "")
    if begins.startswith(("[", "{")) and _are_json(full):
        raise FormatError(path, f"is JSON without sentences; {JSON_EXPECTED}")
    return None


def _as_object(line: str) -> str:
    """Return `["a text", {...}]` as an object with the text; other lines stay as they are."""
    if not line.lstrip().startswith("["):
        return line
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return line
    return json.dumps({**row[1], "text": row[0]}) if is_text_with_object(row) else line


def _are_json(lines: Sequence[str]) -> bool:
    try:
        [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return False
    return True


def json_sentences(
    path: str | Path, lines: Sequence[Line], bad: BadRows, *, column: str | None = None, word_column: str | None = None
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the line, the words and the tags of each sentence.

    `column`: the field of the tags, or of the marked spans; `word_column`: that of the words.
    """
    full = [(number, line) for number, line in lines if line.strip()]
    rows: list[dict[str, Any]] = [json.loads(without_comma(line)) for _, line in full if is_object(line)]
    first = next((row for row in rows if has_words(row) or is_marked(row)), {})
    if is_marked(first) and not has_words(first) and word_column is None:
        yield from _marked_sentences(MarkedTexts(path, rows, column), full, bad)
        return

    def read(number: int, line: str) -> tuple[int, list[str], list[str]]:
        where = f"{path}:{number}"
        row = json_object(where, line)
        words, tags = _field(where, row, "word_column", word_column), _field(where, row, "column", column)
        if not are_strings(row[words]) or len(row[words]) != len(row[tags]):
            what = f"has {len(row[words])} {words} and {len(row[tags])} {tags}"
            raise FormatError(where, f"{what}; each word is a string and needs a tag")
        return number, ["_".join(word.split()) or "_" for word in row[words]], row[tags]

    for number, words, tags in bad.read_each(full, read):
        if not are_strings(tags):
            what = f"has the tag {next(tag for tag in tags if not isinstance(tag, str))!r}, which is not a name"
            advice = 'write names, such as "B-PER"; in Python, `train` takes a Dataset, whose features have the names'
            raise FormatError(f"{path}:{number}", f"{what}; {advice}")
        if words:
            yield number, words, tags


def _marked_sentences(marked: MarkedTexts, lines: Sequence[Line], bad: BadRows) -> Iterator[tuple[int, list[str], list[str]]]:
    def read(number: int, line: str) -> tuple[int, dict[str, Any]]:
        return number, json_object(f"{bad.path}:{number}", line)

    def tagged(number: int, row: dict[str, Any]) -> tuple[int, list[str], list[str]]:
        return number, *marked.words(f"{bad.path}:{number}", row)

    rows = list(bad.read_each(lines, read))
    for number, row in rows:
        if row.get("answer") in REJECTED:
            bad.skip(number, "that were rejected (field answer)")
    for number, words, tags in bad.read_each((each for each in rows if each[1].get("answer") not in REJECTED), tagged):
        for begin, end in sentence_bounds(words, tags):
            yield number, words[begin:end], tags[begin:end]
    marked.report()


def _field(where: str, row: dict[str, Any], option: str, given: str | None) -> str:
    what, usual = ("words", WORDS) if option == "word_column" else ("tags", TAGS)
    lists = [name for name, value in row.items() if isinstance(value, list)]
    found = given if given is not None else next((name for name in usual if name in lists), None)
    if found is None:
        raise FormatError(where, f"has no list of {what} (fields: {', '.join(map(str, row))}); {JSON_EXPECTED}")
    if found not in lists:
        raise FormatError(where, f"has no list {found!r}{nearest(found, lists)}; {arg(option)} names the field of the {what}")
    return found


def _is_prose(lines: Sequence[str]) -> bool:
    """Whether lines are sentences: of three words or more, the last with a full stop, and of different lengths."""
    widths = {len(cells(line)) for line in lines}
    ends = sum(bool(_SENTENCE_END.search(line)) and "\t" not in line for line in lines)
    return min(widths) > 2 and ends >= _MIN_SHARE * len(lines) and (len(widths) > 1 or len(lines) == 1)


def refuse_prose(path: str | Path, lines: Sequence[Line]) -> None:
    """Raise an error if lines of which no sentence can be read are plain text: as many words each as they happen to have."""
    head = [line for _, line in lines[:_HEAD] if line.strip()]
    widths = [len(cells(line)) for line in head]
    if len(set(widths)) > 1 and max(widths) >= _PROSE_WORDS and not any("\t" in line for line in head):
        raise _plain_text(path, f"it begins with {head[0][:30]!r}")


def _plain_text(path: str | Path, why: str) -> FormatError:
    return FormatError(path, f"seems to be plain text ({why}), not labelled data; {_NO_TAGS}")


def refuse_other_shapes(path: str | Path, lines: Sequence[Line]) -> None:
    """Raise an error that says what a file seems to be, if it is CSV or has several words and tags on a line."""
    head = [line for _, line in lines[:_HEAD] if line.strip()]
    if not head:
        return
    if max(map(len, head)) > _LONGEST:  # seconds for each megabyte, if it were looked at word by word
        longest = next(number for number, line in lines if len(line) > _LONGEST)
        raise _plain_text(path, f"line {longest} has more than {_LONGEST:,} characters")
    names = {name.strip(' "').lower() for name in head[0].split(",")}
    rows = [line for line in head if "," in line and (names & WORD_COLUMNS or len(cells(line)) == 1)]
    named = ".csv" in Path(path).suffixes and "\t" not in head[0] and re.search("[,;]", head[0]) is not None
    if named or (len(names) > 1 and len(rows) >= _MIN_SHARE * len(head)):
        raise FormatError(path, f"seems to be CSV (it begins with {head[0][:30]!r}); {EXPECTED}")
    if _is_prose(head):
        raise _plain_text(path, f"it begins with {head[0][:30]!r}")
    words = [word for line in head for word in cells(line)]
    for separator, joined in _JOINED.items():
        if len(words) > len(head) and sum(bool(joined.fullmatch(word)) for word in words) >= _MIN_SHARE * len(words):
            given = f"seems to have words with their tags, such as {words[0][:30]!r}, on each line"
            raise FormatError(path, f"{given}: separate them at {separator!r}; {EXPECTED}")
