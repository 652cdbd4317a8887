"""Labelled texts and pairs of texts: TSV, CSV, JSON lines, and lines of a label and a text.

In TSV a quote is a character like any other, as in JOINER, but for cells that can only come from a writer of CSV (`_unquoted`
says which). In CSV cells may stand in quotes and go over several lines (RFC 4180); commas divide them, or semicolons or tabs
where the first line has no comma, or what a first line such as `sep=;` says. `lines` is the form of MR, SUBJ and TREC: a
label, a blank, the text. The kind is told by content, then by name (the STS benchmark is TSV that calls itself .csv); where
both leave doubt, the reader asks. Nothing is lost in silence: a row that is not as the others is an error that names file and
line, and rows set aside by rule are given back.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from polyseme.base.errors import FormatError, UsageError, nearest
from polyseme.text.labelled.numbered_lines import numbered_lines

TableFormat = Literal["tsv", "csv", "jsonl", "lines"]
Column = str | int | None
Line = tuple[int, str]
Record = tuple[int, Sequence[object]]
"""The line on which it begins, and its cells; a cell of JSON lines may be any value, all others are strings."""

PAIRS = (
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("sentence_a", "sentence_b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("#1 string", "#2 string"),
)
TEXTS = ("sentence", "text", "text_a", "phrase", "review", "question", "content")
LABELS = (
    *("gold_label", "label", "entailment_judgment", "quality", "is_duplicate", "class", "similarity", "score"),
    "relatedness_score",
)
"""Well-known names in headers, in small letters; of several labels the first in this order is taken."""
NO_AGREEMENT = "-"
"""The label of pairs on which annotators did not agree (SNLI, MNLI, OCNLI)."""

_PACKED = (".gz", ".xz", ".zst")
_LAX = "give --no-strict (strict=False)"
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_DIVIDERS = (",", ";", "\t")
"""What divides the cells of CSV: the first of these that the first line has, quoted cells aside."""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_DECLARED = re.compile(r'"?sep=([^"\w ])"?', re.IGNORECASE)
"""A first line by which Excel is told what divides the cells."""
_HEAD = 200
"""As many lines are looked at to tell the kind."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A text or a pair of texts."""

    first: str
    second: str | None
    label: str | None
    where: int
    """The line on which it begins."""


@dataclass(frozen=True, slots=True)
class Table:
    """What a file holds."""

    rows: list[TableRow]
    skipped: list[TableRow]
    """Pairs on which annotators did not agree (their label is "-") and, where asked for, rows without a text."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """How a file begins."""

    kind: TableFormat
    where: int
    """The line of the first row."""
    cells: list[str]
    """The first row, be it a header or not; of JSON lines the keys of the first object."""
    others: list[list[str]]
    """The rows behind it, a few hundred at most."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns are read."""

    first: int
    second: int | None
    label: int | None
    names: list[str]
    """How messages call each column."""
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
    kind: TableFormat | None = None,
    strict: bool = True,
) -> Table:
    """All rows of a file (plain, gzip or xz).

    `text`, `second`, `label`: columns by name, or by number from 0 (or from -1 backwards). Without `text`, well-known names
    are looked for in the header, pairs first; with `text` alone there is no second text. `labelled=False`: the file has no
    labels, or none is wanted. `header`: whether the first row names the columns; not given, it does where a column is
    asked for by name or a name is well known. `strict=False`: rows without a text are set aside instead of being an error,
    and rows may differ in length as long as they have the columns that are read.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("text\\tlabel\\n\\"So\\" good\\t1\\n")
    >>> read_table(file).rows
    [TableRow(first='"So" good', second=None, label='1', where=2)]
    """
    kind, records = _records(path, kind)
    opening = next(records, None)
    if opening is None:
        raise FormatError(path, "is empty; expected a table")
    cells = [_plain(cell) for cell in opening[1]]
    if labelled and len(cells) < 2 and kind in ("tsv", "csv"):
        signs = "divided by tabs, or in CSV (--kind csv) by commas or semicolons; a first line such as sep=| says another sign"
        raise FormatError(f"{path}:{opening[0]}", f"has one column, {cells[0][:20]!r}; expected a text and a label, {signs}")
    asked = (text, second, label)
    named = kind in ("jsonl", "lines") or (_is_header(cells, asked) if header is None else header)
    layout = _layout(path, cells if named else None, opening, asked, labelled)
    rows: list[TableRow] = []
    skipped: list[TableRow] = []
    for record in records if named else chain([opening], records):
        row = _row(path, record, layout, strict)
        (skipped if _set_aside(row) else rows).append(row)
    if header is None and not named:
        _not_a_header(path, rows)
    if not rows and not skipped:
        raise FormatError(path, "holds a header and no rows; expected a text on each line")
    return Table(rows, skipped)


def read_table_head(path: str | Path) -> TableHead:
    """The first rows of a file, for a reader that has names and rules of its own for columns (`parallel`, beside this).

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("en\\tde\\none\\teins\\n")
    >>> read_table_head(file)
    TableHead(kind='tsv', where=1, cells=['en', 'de'], others=[['one', 'eins']])
    """
    kind, records = _records(path, None)
    rows = [(number, [_plain(cell) for cell in cells]) for number, cells in islice(records, _HEAD)]
    if not rows:
        raise FormatError(path, "is empty; expected a table")
    (where, first), *others = rows
    return TableHead(kind, where, first, [cells for _, cells in others])


def _records(path: str | Path, kind: TableFormat | None) -> tuple[TableFormat, Iterator[Record]]:
    """The kind of a file, told by its first lines where it is not given, and its rows from the first."""
    lines = _lines(path)
    head = list(islice(lines, _HEAD))
    kind = kind or _kind(path, head)
    if kind not in _RECORDS:
        raise UsageError(f"{path}: {kind!r} is no kind of table{nearest(kind, _RECORDS)}")
    return kind, _RECORDS[kind](path, chain(head, lines))


def _set_aside(row: TableRow) -> bool:
    if row.second is None:
        return not row.first.strip()
    return row.label == NO_AGREEMENT or not row.first.strip() or not row.second.strip()


def _lines(path: str | Path) -> Iterator[Line]:
    advice = "save it as UTF-8 (iconv -f OLD -t UTF-8, with GB18030, LATIN1 or UTF-16 for OLD)"
    try:
        for number, line in numbered_lines(path):
            if "\0" in line:
                raise FormatError(f"{path}:{number}", f"holds zero bytes and may be UTF-16; {advice}")
            yield number, line
    except FormatError as error:
        if isinstance(error.__context__, UnicodeDecodeError):
            raise FormatError(error.path, f"{str(error).removeprefix(f'{error.path}: ')}; {advice}") from None
        raise


def _kind(path: str | Path, head: list[Line]) -> TableFormat:
    """By content, then by name; an error where neither tells."""
    lines = [line for _, line in head if line.strip()]
    if not lines:
        raise FormatError(path, "is empty; expected a table")
    if _DECLARED.fullmatch(lines[0]):
        return "csv"
    suffix = next((each.lower() for each in reversed(Path(path).suffixes) if each.lower() not in _PACKED), "")
    if lines[0].startswith("{") and (suffix in (".json", ".jsonl", ".ndjson") or _is_object(lines[0])):
        return "jsonl"
    if suffix in (".json", ".jsonl", ".ndjson"):
        raise FormatError(f"{path}:1", f"begins with {lines[0][:20]!r}; expected JSON lines, one object {{...}} on each line")
    if all("\t" in line for line in lines) or ("\t" in lines[0] and suffix != ".csv"):
        return "tsv"
    if suffix in (".tsv", ".csv"):
        return "tsv" if suffix == ".tsv" else "csv"
    may_be_csv, may_be_lines = _may_be_csv(lines), _may_be_lines(lines)
    if may_be_csv == may_be_lines:
        found = "may be CSV or lines of a label and a text" if may_be_csv else "looks like no kind of table that is known"
        raise FormatError(path, f"{found}; say which it is: --kind is one of {', '.join(_RECORDS)}")
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
    """Whether columns are asked for by name, or all cells could be names and one is well known."""
    if any(isinstance(column, str) for column in asked):
        return True
    names = [cell.strip().lower() for cell in cells]
    if len(set(names)) < len(names) or any(not name or _NUMBER.fullmatch(name) for name in names):
        return False
    return not {*chain(*PAIRS), *TEXTS, *LABELS}.isdisjoint(names)


def _not_a_header(path: str | Path, rows: list[TableRow]) -> None:
    """An error where the first row, which was taken for a text, has a label like no other."""
    labels = [row.label for row in rows if row.label is not None]
    if len(labels) < 3 or labels[0] in labels[1:] or _NUMBER.fullmatch(labels[0]):
        return
    numbers = all(_NUMBER.fullmatch(label) for label in labels[1:])
    if numbers or len(set(labels)) < len(labels):
        found = f"may be a header: the label {labels[0][:20]!r} occurs nowhere else"
        way = "say whether it is: --header or --no-header (header=True or False)"
        raise FormatError(f"{path}:{rows[0].where}", f"{found}; {way}")


def _layout(
    path: str | Path, header: list[str] | None, opening: Record, asked: tuple[Column, Column, Column], labelled: bool
) -> _Layout:
    text, second, label = asked
    if text is None and second is not None:
        raise UsageError(f"{path}: second={second!r} was asked for without text; give both (--text, --second), or none")
    if label is not None and not labelled:
        raise UsageError(f"{path}: label={label!r} was asked for together with labelled=False; give one of them")
    names = [str(number) for number in range(len(opening[1]))] if header is None else header
    if header is None and (text is None or (label is None and labelled)):
        raise UsageError(f"{path}:{opening[0]}: {_no_header([_plain(cell) for cell in opening[1]])}")
    if text is None:
        first_place, second_place = _guessed_text(path, names)
    else:
        first_place = _place(path, "text", text, header, len(names))
        second_place = None if second is None else _place(path, "second", second, header, len(names))
    label_place: int | None = None
    if labelled:
        label_place = _guessed_label(path, names) if label is None else _place(path, "label", label, header, len(names))
    places = [place for place in (first_place, second_place, label_place) if place is not None]
    if len(set(places)) < len(places):
        given = ", ".join(names[place] for place in places)
        raise UsageError(f"{path}: text, second and label must be different columns; got {given}")
    return _Layout(first_place, second_place, label_place, names, opening[0])


def _no_header(cells: list[str]) -> str:
    """Which row was found instead, and how its columns can be named."""
    row = ", ".join(f"{number}: {cell[:20]!r}" for number, cell in enumerate(cells))
    ways = "--text 0 --label 1" + (", for pairs --text 0 --second 1 --label 2" if len(cells) > 2 else "")
    quotes = "; where cells stand in quotes, add --kind csv" if any(map(_QUOTED.fullmatch, cells)) else ""
    return (
        f"is no header that is known ({row}); name the columns by number, or by name if it is one: {ways} "
        f"(in Python text, second and label, or labelled=False without labels){quotes}"
    )


def _place(path: str | Path, role: str, column: str | int, header: list[str] | None, width: int) -> int:
    """The number of a column that was asked for."""
    if isinstance(column, int):
        if not -width <= column < width:
            raise UsageError(f"{path} has {width} columns; {role}={column} was asked for: numbers go from 0 to {width - 1}")
        return column % width
    if header is None:
        way = "if it has one, leave out --no-header (header=False)"
        raise UsageError(f"{path} has no header, so {role}={column!r} must be a number from 0; {way}")
    for names, name in ((header, column), ([each.strip().lower() for each in header], column.lower())):
        if names.count(name) == 1:
            return names.index(name)
    times = "no column" if column not in header else "several columns"
    raise UsageError(f"{path} has {times} {column!r} for {role}; its columns are {', '.join(header)}")


def _guessed_text(path: str | Path, names: list[str]) -> tuple[int, int | None]:
    small = [name.strip().lower() for name in names]
    pairs = [(small.index(one), small.index(two)) for one, two in PAIRS if one in small and two in small]
    if len(pairs) == 1:
        return pairs[0]
    texts = [small.index(name) for name in TEXTS if name in small]
    if pairs or len(texts) != 1:
        found = "several columns that may be the text" if pairs or texts else "no column with a well-known name for the text"
        raise UsageError(f"{path} has {found}; say which with --text, for pairs --text and --second: {', '.join(names)}")
    return texts[0], None


def _guessed_label(path: str | Path, names: list[str]) -> int:
    small = [name.strip().lower() for name in names]
    for name in LABELS:
        if name in small:
            return small.index(name)
    raise UsageError(
        f"{path} has no column with a well-known name for the label; say which with --label (in Python labelled=False "
        f"where there is none): {', '.join(names)}"
    )


def _row(path: str | Path, record: Record, layout: _Layout, strict: bool) -> TableRow:
    number, cells = record
    last = max(layout.first, layout.second or 0, layout.label or 0)
    where = f"{path}:{number}"
    if len(cells) != len(layout.names) if strict else len(cells) <= last:
        found = f"has {len(cells)} columns and line {layout.begin} has {len(layout.names)}"
        found += ": a tab, comma, semicolon or quote may be amiss"
        way = f"where only columns differ that are not read, {_LAX}" if strict else f"column {last} is read"
        if any(_plain(cell).startswith('"') for cell in cells):
            way += "; where quotes hold a text with tabs or line ends together, save or read it as CSV (--kind csv)"
        raise FormatError(where, f"{found}; mend the line ({way})")
    found_cells = {}
    for role, place in (("text", layout.first), ("second text", layout.second), ("label", layout.label)):
        if place is None:
            continue
        cell, column = cells[place], layout.names[place]
        if isinstance(cell, list | dict):
            raise FormatError(where, f"has a list or an object in column {column}; expected a string for the {role}")
        found_cells[role] = _plain(cell)
        if not found_cells[role].strip() and (strict or role == "label"):
            way = "in Python give labelled=False where none is needed" if role == "label" else f"{_LAX} to set such rows aside"
            raise FormatError(where, f"has no {role} in column {column}; fill it, drop the row, or {way}")
    label = found_cells["label"].strip() if "label" in found_cells else None
    return TableRow(found_cells["text"], found_cells.get("second text"), label, number)


def _plain(cell: object) -> str:
    """A cell as a string; nothing where JSON says null."""
    return cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell)


def _tsv(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    for number, line in lines:
        if line:
            cells = line.split("\t")
            yield number, [_unquoted(cell) for cell in cells] if '""' in line else cells


def _unquoted(cell: str) -> str:
    """The text of a cell that a writer of CSV put into quotes, as pandas and Excel do where it holds a quote; else the cell.

    It begins and ends with a quote, has others within, and all of those are doubled. A cell without quotes within is left
    alone, and so is one that merely begins with a quote: in raw text both are quotations (MRPC has 148 of the former and 951
    of the latter, and none that this unquotes).

    >>> _unquoted('"I said ""hi"" to her"'), _unquoted('"Hi."'), _unquoted('"Hi," I said, "you."')
    ('I said "hi" to her', '"Hi."', '"Hi," I said, "you."')
    """
    within = cell[1:-1]
    whole = cell[:1] == cell[-1:] == '"' and '""' in within and '"' not in within.replace('""', "")
    return within.replace('""', '"') if whole else cell


def _csv(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    lines = iter(lines)
    begin, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    if declared := _DECLARED.fullmatch(first):
        begin, divider = begin + 1, declared[1]
    else:
        bare = _QUOTED.sub("", first)
        divider = next((each for each in _DIVIDERS if each in bare), ",")
        lines = chain([(begin, first)], lines)
    before = begin - 1
    reader = csv.reader((f"{line}\n" for _, line in lines), delimiter=divider, strict=True)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            told = f"begins a row that is no CSV ({error})"
            what = f"{told}; a text with {divider!r} or a quote is put in quotes, its own doubled"
            raise FormatError(f"{path}:{begin}", what) from None
        if cells is None:
            return
        if cells:
            yield begin, cells
        begin = before + reader.line_num + 1


def _jsonl(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    """First the keys of the first object, as a header; then the values of each object in that order."""
    header: list[str] | None = None
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if "\\u" in line:
                json.dumps(row, ensure_ascii=False).encode()  # half a character is no text, and UTF-8 refuses it
        except UnicodeEncodeError:
            what = "holds half a character (one of \\ud800 to \\udfff without its other half); mend the text"
            raise FormatError(f"{path}:{number}", what) from None
        except ValueError as error:
            raise FormatError(f"{path}:{number}", f"is no JSON ({error}); expected one object {{...}} on each line") from None
        if not isinstance(row, dict):
            raise FormatError(f"{path}:{number}", f"is {line[:20]!r}; expected one object {{...}} on each line")
        if header is None:
            header = list(row)
            yield number, header
        yield number, [row.get(name) for name in header]


def _label_and_text(path: str | Path, lines: Iterable[Line]) -> Iterator[Record]:
    """First a header of our own, then each line cut at its first blank."""
    yield 1, ["label", "text"]
    for number, line in lines:
        if line.strip():
            label, _, text = line.partition(" ")
            yield number, [label, text]


_RECORDS: dict[str, Callable[[str | Path, Iterable[Line]], Iterator[Record]]] = {
    "tsv": _tsv,
    "csv": _csv,
    "jsonl": _jsonl,
    "lines": _label_and_text,
}
