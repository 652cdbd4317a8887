"""Labelled texts and pairs of texts: TSV, CSV, JSON lines, and lines of a label and a text.

In TSV a quote is a character like any other, as in GLUE, except in cells that only a CSV writer can have made (`_unquoted`). In
CSV cells may be quoted and span several lines (RFC 4180); commas separate them, or semicolons or tabs if the first line has no
comma, or what a first line such as `sep=;` says. `lines` is the format of MR, SUBJ and TREC: a label, a space, the text. The
format is recognised by content, then by name (the STS benchmark is TSV named .csv); in doubt, an error asks for it. Nothing is
lost silently: a row unlike the others is an error that names file and line, and skipped rows are returned.
"""

from __future__ import annotations

import csv
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from polyseme.base.errors import FormatError, UsageError, arg, nearest
from polyseme.text.files.decompression import ENCODING_ADVICE
from polyseme.text.labelled.numbered_lines import Line, json_object, numbered_lines

TableFormat = Literal["tsv", "csv", "jsonl", "lines"]
Column = str | int | None
"""A name, or a number from 0 (or from -1 backwards), which may be written as a string."""
Record = tuple[int, Sequence[object]]
"""The first line of a row and its cells; a cell of JSON lines may be any value, all others are strings."""

_log = logging.getLogger(__name__)
PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("sentence_a", "sentence_b"), ("text_a", "text_b")),
    *(("text1", "text2"), ("question1", "question2"), ("question", "sentence"), ("#1 string", "#2 string")),
)
TEXTS = ("sentence", "text", "text_a", "phrase", "review", "question", "content")
LABELS = (
    *("gold_label", "label", "entailment_judgment", "quality", "is_duplicate", "class", "similarity", "score"),
    "relatedness_score",
)
"""Well-known names in headers, in lower case; of several labels the first in this order is used."""
NO_AGREEMENT = "-"
"""The label of pairs on which annotators did not agree (SNLI, MNLI, OCNLI)."""

_COMPRESSED = (".gz", ".xz", ".zst")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_SEPARATORS = (",", ";", "\t")
"""Of CSV: the first of these that the first line has outside quotes."""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DECLARED = re.compile(r'"?sep=([^"\w ])"?', re.IGNORECASE)
"""A first line that tells Excel the separator."""
_HEAD = 200  # lines by which the format is recognised


@dataclass(frozen=True, slots=True)
class TableRow:
    """A text or a pair of texts."""

    first: str
    second: str | None
    label: str | None
    where: int
    """The first line in its file."""


@dataclass(frozen=True, slots=True)
class Table:
    """The content of a file."""

    rows: list[TableRow]
    skipped: list[TableRow]
    """Pairs without agreement of annotators (label "-") and, if not strict, rows without a text."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """The first rows of a file."""

    format: TableFormat
    where: int
    """The line of the first row."""
    cells: list[str]
    """The first row, header or not; in JSON lines the keys of the first object."""
    others: list[list[str]]
    """The rows after it, at most a few hundred."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """The columns to read."""

    first: int
    second: int | None
    label: int | None
    names: list[str]
    """The names of all columns, for messages."""
    begin: int
    """The line of the first record."""


def read_table(
    path: str | Path,
    *,
    text: Column = None,
    second: Column = None,
    label: Column = None,
    labelled: bool = True,
    header: bool | None = None,
    format: TableFormat | None = None,
    strict: bool = True,
) -> Table:
    """Read all rows of a file (plain or compressed).

    `text`, `second`, `label`: columns. Without `text`, the header is searched for well-known names, pairs first; with `text`
    alone there is no second text. `labelled=False`: do not read labels. `header`: whether the first row names the columns; by
    default it does if a column is given by name or a name is well known. `strict=False`: rows without a text are skipped
    instead of being an error, and rows may differ in length as long as they have the columns to read.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("text\\tlabel\\n\\"So\\" good\\t1\\n")
    >>> read_table(file).rows
    [TableRow(first='"So" good', second=None, label='1', where=2)]
    """
    format, records = _records(path, format)
    opening = next(records, None)
    if opening is None:
        raise FormatError(path, "is empty; expected a table")
    cells = [_plain(cell) for cell in opening[1]]
    if labelled and len(cells) < 2 and format in ("tsv", "csv"):
        what = f"has one column, {cells[0][:20]!r}; expected a text and a label, separated by tabs"
        others = f"or in CSV ({arg('format', 'csv')}) by commas, semicolons, or what a line sep=| declares"
        raise FormatError(f"{path}:{opening[0]}", f"{what}, {others}")
    asked = (column_of(text), column_of(second), column_of(label))
    named = format in ("jsonl", "lines") or (_is_header(cells, asked) if header is None else header)
    layout = _layout(path, cells if named else None, opening, asked, labelled)
    rows: list[TableRow] = []
    skipped: list[TableRow] = []
    for record in records if named else chain([opening], records):
        row = _row(path, record, layout, strict)
        (skipped if _is_skipped(row) else rows).append(row)
    if header is None and not named:
        _not_a_header(path, rows)
    if not rows and not skipped:
        raise FormatError(path, "has a header and no rows; expected a text on each line")
    return Table(rows, skipped)


def read_usable_rows(path: str | Path, **columns: Any) -> list[TableRow]:
    """Read a table with the options of `read_table`; skipped rows are reported, and a table must have others."""
    table = read_table(path, **columns)
    skipped, total = len(table.skipped), len(table.rows) + len(table.skipped)
    if skipped:
        why = "without a text, or with the label - (annotators did not agree)"
        _log.warning("%s: skipped %d of %d rows, %s", path, skipped, total, why)
    if not table.rows:
        raise FormatError(path, f"has no usable row: all {skipped} have no text, or the label -")
    return table.rows


def read_table_head(path: str | Path) -> TableHead:
    """Read the first rows of a file, for a reader with its own rules for columns (`parallel`).

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("en\\tde\\none\\teins\\n")
    >>> read_table_head(file)
    TableHead(format='tsv', where=1, cells=['en', 'de'], others=[['one', 'eins']])
    """
    format, records = _records(path, None)
    rows = [(number, [_plain(cell) for cell in cells]) for number, cells in islice(records, _HEAD)]
    if not rows:
        raise FormatError(path, "is empty; expected a table")
    (where, first), *others = rows
    return TableHead(format, where, first, [cells for _, cells in others])


def _records(path: str | Path, format: TableFormat | None) -> tuple[TableFormat, Iterator[Record]]:
    """Return the format of a file, recognised by its first lines if not given, and its rows."""
    lines = _lines(path)
    head = list(islice(lines, _HEAD))
    format = format or _format(path, head)
    if format not in _RECORDS:
        raise UsageError(f"{path}: unknown table format {format!r}{nearest(format, _RECORDS)}")
    return format, _RECORDS[format](path, chain(head, lines))


def _is_skipped(row: TableRow) -> bool:
    if row.second is None:
        return not row.first.strip()
    return row.label == NO_AGREEMENT or not row.first.strip() or not row.second.strip()


def _lines(path: str | Path) -> Iterator[Line]:
    for number, line in numbered_lines(path):
        if "\0" in line:
            raise FormatError(f"{path}:{number}", f"has zero bytes and may be UTF-16; {ENCODING_ADVICE}")
        yield number, line


def _format(path: str | Path, head: list[Line]) -> TableFormat:
    """Recognise the format by content, then by name; raise an error if neither is enough."""
    lines = [line for _, line in head if line.strip()]
    if not lines:
        raise FormatError(path, "is empty; expected a table")
    if _DECLARED.fullmatch(lines[0]):
        return "csv"
    suffix = next((each.lower() for each in reversed(Path(path).suffixes) if each.lower() not in _COMPRESSED), "")
    if lines[0].startswith("{") and (suffix in (".json", ".jsonl", ".ndjson") or _is_object(lines[0])):
        return "jsonl"
    if suffix in (".json", ".jsonl", ".ndjson"):
        raise FormatError(f"{path}:1", f"begins with {lines[0][:20]!r}; expected JSON lines, one object {{...}} per line")
    if all("\t" in line for line in lines) or ("\t" in lines[0] and suffix != ".csv"):
        return "tsv"
    if suffix in (".tsv", ".csv"):
        return "tsv" if suffix == ".tsv" else "csv"
    may_be_csv, may_be_lines = _may_be_csv(lines), _may_be_lines(lines)
    if may_be_csv == may_be_lines:
        problem = "may be CSV or lines of a label and a text" if may_be_csv else "has no known table format"
        raise FormatError(path, f"{problem}; give {arg('format')}: {', '.join(_RECORDS)}")
    return "csv" if may_be_csv else "lines"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _may_be_csv(lines: list[str]) -> bool:
    try:
        rows = [row for row in csv.reader(line + "\n" for line in lines) if row]
    except csv.Error:
        return False
    return len(rows[0]) > 1 and (_is_header(rows[0], ()) or len({len(row) for row in rows}) == 1)


def _may_be_lines(lines: list[str]) -> bool:
    """Whether all lines begin with a word that looks like a label: a number, or one of a few."""
    labels = [line.split(" ", 1)[0] for line in lines if " " in line.rstrip()]
    few = len(set(labels)) * 4 <= len(labels) or all(_NUMBER.fullmatch(label) for label in labels)
    return len(labels) == len(lines) and few


def _is_header(cells: Sequence[str], asked: Sequence[Column]) -> bool:
    """Whether columns are given by name, or all cells could be names and one is well known."""
    if any(isinstance(column, str) for column in asked):
        return True
    names = [cell.strip().lower() for cell in cells]
    if len(set(names)) < len(names) or any(not name or _NUMBER.fullmatch(name) for name in names):
        return False
    return not {*chain(*PAIRS), *TEXTS, *LABELS}.isdisjoint(names)


def _not_a_header(path: str | Path, rows: list[TableRow]) -> None:
    """Raise an error if the first row, taken as a text, has a label like no other."""
    labels = [row.label for row in rows if row.label is not None]
    if len(labels) < 3 or labels[0] in labels[1:] or _NUMBER.fullmatch(labels[0]):
        return
    numbers = all(_NUMBER.fullmatch(label) for label in labels[1:])
    if numbers or len(set(labels)) < len(labels):
        doubt = f"may be a header: the label {labels[0][:20]!r} occurs nowhere else"
        raise FormatError(f"{path}:{rows[0].where}", f"{doubt}; give {arg('header', True)} or {arg('header', False)}")


def _layout(
    path: str | Path, header: list[str] | None, opening: Record, asked: tuple[Column, Column, Column], labelled: bool
) -> _Layout:
    text, second, label = asked
    if text is None and second is not None:
        raise UsageError(f"{path}: {arg('second', second)} needs {arg('text')}; give both or neither")
    if label is not None and not labelled:
        raise UsageError(f"{path}: {arg('label', label)} and labelled=False exclude each other; give one of them")
    names = [str(number) for number in range(len(opening[1]))] if header is None else header
    if header is None and (text is None or (label is None and labelled)):
        raise UsageError(f"{path}:{opening[0]}: {_no_header([_plain(cell) for cell in opening[1]])}")
    numbers = {
        role: column_number(path, role, column, header, len(names))
        for role, column in (("text", text), ("second", second), ("label", label))
        if column is not None
    }
    if text is None:
        numbers |= _guessed_texts(path, names)
    if label is None and labelled:
        numbers["label"] = _guessed_label(path, names)
    if len(set(numbers.values())) < len(numbers):
        given = ", ".join(names[column] for column in numbers.values())
        raise UsageError(f"{path}: {arg('text')}, {arg('second')} and {arg('label')} must be different columns, not {given}")
    return _Layout(numbers["text"], numbers.get("second"), numbers.get("label"), names, opening[0])


def _no_header(cells: list[str]) -> str:
    """Return the first row, and how to name its columns."""
    row = ", ".join(f"{number}: {cell[:20]!r}" for number, cell in enumerate(cells))
    columns = f"{arg('text', 0)} {arg('label', 1)}"
    if len(cells) > 2:
        columns += f", for pairs {arg('text', 0)} {arg('second', 1)} {arg('label', 2)}"
    quotes = f"; for quoted cells add {arg('format', 'csv')}" if any(map(_QUOTED.fullmatch, cells)) else ""
    return f"is not a known header ({row}); give columns by number, or by name if it is a header: {columns}{quotes}"


def column_of(name: Column) -> Column:
    """Return a column as a number if it is one, else as a name.

    >>> column_of("-1"), column_of("label")
    (-1, 'label')
    """
    return int(name) if isinstance(name, str) and name.removeprefix("-").isdecimal() else name


def column_number(path: str | Path, role: str, column: str | int, header: Sequence[str] | None, width: int) -> int:
    """Return the number of a requested column."""
    if isinstance(column, int):
        if not -width <= column < width:
            what = f"{path} has {width} columns, so {arg(role, column)} does not exist"
            raise UsageError(f"{what}; give a number from 0 to {width - 1}")
        return column % width
    if header is None:
        advice = f"if it has one, drop {arg('header', False)}"
        raise UsageError(f"{path} has no header, so {arg(role, column)} must be a number from 0; {advice}")
    cells = [cell.strip() for cell in header]
    for names, name in ((cells, column), ([cell.lower() for cell in cells], column.lower())):
        if names.count(name) == 1:
            return names.index(name)
    how_many = "no column" if column not in cells else "several columns"
    given = ", ".join(repr(cell[:20]) for cell in cells)
    advice = "give a name, or a number from 0 if these are not names"
    raise UsageError(f"{path} has {how_many} {column!r} for {arg(role)} among {given}; {advice}")


def _guessed_texts(path: str | Path, names: list[str]) -> dict[str, int]:
    small = [name.strip().lower() for name in names]
    pairs = [(small.index(one), small.index(two)) for one, two in PAIRS if one in small and two in small]
    if len(pairs) == 1:
        return {"text": pairs[0][0], "second": pairs[0][1]}
    texts = [small.index(name) for name in TEXTS if name in small]
    if pairs or len(texts) != 1:
        problem = "several columns that may be the text" if pairs or texts else "no column with a well-known name for the text"
        advice = f"give {arg('text')}, for pairs {arg('text')} and {arg('second')}"
        raise UsageError(f"{path} has {problem}; {advice}: {', '.join(names)}")
    return {"text": texts[0]}


def _guessed_label(path: str | Path, names: list[str]) -> int:
    small = [name.strip().lower() for name in names]
    known = next((name for name in LABELS if name in small), None)
    if known is None:
        what = f"{path} has no column with a well-known name for the label"
        raise UsageError(f"{what}; give {arg('label')}: {', '.join(names)}")
    return small.index(known)


def _row(path: str | Path, record: Record, layout: _Layout, strict: bool) -> TableRow:
    number, cells = record
    last = max(layout.first, layout.second or 0, layout.label or 0)
    where = f"{path}:{number}"
    if len(cells) != len(layout.names) if strict else len(cells) <= last:
        problem = f"has {len(cells)} columns and line {layout.begin} has {len(layout.names)}"
        problem += ": a tab, comma, semicolon or quote may be wrong"
        advice = f"if only unread columns differ, give {arg('strict', False)}" if strict else f"column {last} is read"
        if any(_plain(cell).startswith('"') for cell in cells):
            advice += f"; for quoted texts with tabs or line ends, use {arg('format', 'csv')}"
        raise FormatError(where, f"{problem}; fix the line ({advice})")
    texts = {}
    for role, number_of_column in (("text", layout.first), ("second text", layout.second), ("label", layout.label)):
        if number_of_column is None:
            continue
        cell, column = cells[number_of_column], layout.names[number_of_column]
        if isinstance(cell, list | dict):
            raise FormatError(where, f"has a list or an object in column {column}; expected a string for the {role}")
        texts[role] = _plain(cell)
        if not texts[role].strip() and (strict or role == "label"):
            advice = "" if role == "label" else f", or skip such rows with {arg('strict', False)}"
            raise FormatError(where, f"has no {role} in column {column}; fill it, or drop the row{advice}")
    label = texts["label"].strip() if "label" in texts else None
    return TableRow(texts["text"], texts.get("second text"), label, number)


def _plain(cell: object) -> str:
    """Return a cell as a string; empty for null in JSON."""
    return cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell)


def _tsv(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    for number, line in lines:
        if line:
            cells = line.split("\t")
            yield number, [_unquoted(cell) for cell in cells] if '""' in line else cells


def _unquoted(cell: str) -> str:
    """Return the text of a cell that a CSV writer quoted, as pandas and Excel do if it has a quote; else the cell.

    Such a cell begins and ends with a quote and has others inside, all doubled. Cells without inner quotes, and cells that
    only begin with a quote, stay as they are: in raw text both are quotations (MRPC has 148 of the former and 951 of the
    latter, and none that this unquotes).

    >>> _unquoted('"I said ""hi"" to her"'), _unquoted('"Hi."'), _unquoted('"Hi," I said, "you."')
    ('I said "hi" to her', '"Hi."', '"Hi," I said, "you."')
    """
    inner = cell[1:-1]
    quoted = cell[:1] == cell[-1:] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if quoted else cell


def _csv(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    lines = iter(lines)
    begin, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    if declared := _DECLARED.fullmatch(first):
        begin, separator = begin + 1, declared[1]
    else:
        bare = _QUOTED.sub("", first)
        separator = next((each for each in _SEPARATORS if each in bare), ",")
        lines = chain([(begin, first)], lines)
    before = begin - 1
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=separator, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            problem = f"begins a row that is not CSV ({error})"
            advice = f"quote texts with {separator!r} or quotes, and double the quotes inside"
            raise FormatError(f"{path}:{begin}", f"{problem}; {advice}") from None
        if cells is None:
            return
        if cells:
            yield begin, cells
        begin = before + reader.line_num + 1


def _jsonl(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield the keys of the first object as a header, then the values of each object in that order."""
    header: list[str] | None = None
    for number, line in lines:
        if not line.strip():
            continue
        row = json_object(f"{path}:{number}", line)
        if header is None:
            header = list(row)
            yield number, header
        yield number, [row.get(name) for name in header]


def _label_and_text(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield a header of our own, then each line split at its first space."""
    yield 1, ["label", "text"]
    for number, line in lines:
        if line.strip():
            label, _, text = line.partition(" ")
            yield number, [label, text]


_Reader = Callable[[str | Path, Iterable[Line]], Iterator[Record]]
_RECORDS: dict[str, _Reader] = {"tsv": _tsv, "csv": _csv, "jsonl": _jsonl, "lines": _label_and_text}
