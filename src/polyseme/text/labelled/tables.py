"""Labelled texts and pairs of texts: TSV, CSV, JSON (`json_rows`), and lines of a label and a text (`label_lines`).

In TSV a quote is a character like any other, as in GLUE, except in cells that only a CSV writer can have made (`_unquoted`,
`_whole_rows`); `csv_rows` has the rules of CSV. The format is recognised by content, then by name (the STS benchmark is TSV
named .csv); in doubt, an error asks for it. Nothing is lost silently: a row unlike the others is an error that names file and
line, or it is skipped and counted (`bad_rows`).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from polyseme.base.display import count
from polyseme.base.errors import FormatError, UsageError, arg, nearest
from polyseme.text.files.decompression import ENCODING_ADVICE
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.class_folders import class_folders, class_lines
from polyseme.text.labelled.column_names import NUMBER, PAIRS, TEXTS, Column, Request
from polyseme.text.labelled.csv_rows import (
    HEAD,
    csv_reader,
    csv_rows,
    declared_separator,
    declares_separator,
    full_width_advice,
    has_csv_header,
    may_be_csv,
)
from polyseme.text.labelled.json_rows import object_lines
from polyseme.text.labelled.label_lines import (
    PREFIX,
    are_fasttext,
    are_label_lines,
    check_first_words,
    fasttext,
    label_and_text,
)
from polyseme.text.labelled.numbered_lines import Line, is_object, json_object, numbered_lines
from polyseme.text.labelled.table_columns import Layout, Record, choose_columns, plain, report_columns
from polyseme.text.labelled.tagged_lines import tagged_line

TableFormat = Literal["tsv", "csv", "jsonl", "lines", "fasttext"]
NO_AGREEMENT = "-"
"""The label of pairs on which annotators did not agree (SNLI, MNLI, OCNLI)."""

_COMPRESSED = (".gz", ".xz", ".zst")
_OF_A_ROW = (*TEXTS, *chain(*PAIRS))  # fields
_SAMPLE = 1000  # rows by which columns are recognised
_MIN_REPEATED = 0.9  # of the rows have a label that occurs again, where labels are classes
_LONGER = 3  # times as long as all labels that occur again is no label


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
    """Pairs without agreement of annotators (label "-") and, if not strict, rows without a text or a label."""
    layout: Layout | None = field(default=None, repr=False, compare=False)
    """The columns that were read."""
    bad: BadRows | None = field(default=None, repr=False, compare=False)
    """All rows that were not read."""
    format: TableFormat | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class WholeTable:
    """All columns of a file."""

    names: list[str]
    rows: dict[int, list[object]]
    """The cells of each row, by its first line: as many as there are names."""
    separator: str
    """What separates the cells in CSV; for other formats a comma."""


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
    pairs: bool | None = None,
    known: Collection[str] = (),
) -> Table:
    """Read all rows of a file (plain or compressed).

    `text`, `second`, `label`: columns. Without `text`, the header is searched for well-known names, pairs first; with `text`
    alone there is no second text. `labelled=False`: do not read labels. `header`: whether the first row names the columns; by
    default it does if a column is given by name or a name is well known.

    `strict=False`: bad rows are skipped instead of being an error: without a text or a label, or with so many columns that it
    is not clear which is which. Columns without well-known names are guessed by their content (`pairs`: with a second text).
    `known`: labels besides those of the file, by which it is clear.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("text\\tlabel\\n\\"So\\" good\\t1\\n")
    >>> read_table(file).rows
    [TableRow(first='"So" good', second=None, label='1', where=2)]
    """
    bad = BadRows(path, strict=strict)
    asked = Request(text, second, label, labelled=labelled, header=header, strict=strict, pairs=pairs)
    format, separator, records, layout = _opened(path, format, asked, bad)
    rows = list(_Rows(layout, format, separator, bad).read(records, known))
    if header is None and not layout.header and _is_doubtful(rows):
        doubt = f"may be a header: the label {str(rows[0].label)[:20]!r} occurs nowhere else"
        bad.add(rows[0].where, "that may be a header", f"{doubt}; give {arg('header', True)} or {arg('header', False)}")
        del rows[0]
    bad.refuse()
    if not strict:
        rows = _without_stray_texts(rows, bad)
    table = Table([], [], layout, bad, format)
    for row in rows:
        (table.skipped if _is_skipped(row, layout, bad) else table.rows).append(row)
    if not rows and not len(bad):
        raise FormatError(path, "has a header and no rows; expected a text on each line")
    return table


def read_whole_table(path: str | Path, **columns: Any) -> WholeTable:
    """Read all cells of a file with options of `read_table`; columns without a header have their numbers as names.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.csv"); _ = file.write_text("id;text\\n7;a cat\\n8\\n")
    >>> read_whole_table(file, text="text", labelled=False, strict=False)
    WholeTable(names=['id', 'text'], rows={2: ['7', 'a cat'], 3: ['8', '']}, separator=';')
    """
    bad = BadRows(path, strict=False)
    format, separator, records, layout = _opened(path, None, Request(**columns), bad)
    if format == "jsonl":
        objects = dict(_objects(bad, _lines(path, bad)))
        names = list(dict.fromkeys(chain.from_iterable(objects.values())))  # a key may begin late
        return WholeTable(names, {line: [row.get(name) for name in names] for line, row in objects.items()}, ",")
    rows = {line: list(cells) for line, cells in records}
    for cells in rows.values():
        while len(cells) > len(layout.names) and not plain(cells[-1]).strip():
            cells.pop()
    width = max(map(len, rows.values()), default=0)
    names = [*layout.names, *map(str, range(len(layout.names), width))]
    rows = {line: [*cells, *[""] * (len(names) - len(cells))] for line, cells in rows.items()}
    return WholeTable(names, rows, separator if format == "csv" else ",")


def read_usable_rows(path: str | Path, **columns: Any) -> list[TableRow]:
    """Read a table with the options of `read_table`; skipped rows are reported, and a table must have others."""
    table = read_table(path, **columns)
    assert table.layout is not None and table.bad is not None
    report_columns(path, table.layout)
    if table.format == "lines" and columns.get("format") is None:
        check_first_words(path, [row.first for row in table.rows], [row.label for row in table.rows if row.label])
    table.bad.finish(len(table.rows))
    return table.rows


def guessed_columns(path: str | Path, *, format: TableFormat | None = None, **columns: Any) -> dict[str, str | bool]:
    """Return the columns of a table as options, if they are guessed by its content; else none.

    Other files of the same kind can then be read alike, however few rows they have.
    """
    layout = file_layout(path, format=format, **columns)
    if not layout.guessed:
        return {}
    report_columns(path, layout)
    return layout.options()


def file_layout(path: str | Path, *, format: TableFormat | None = None, **columns: Any) -> Layout:
    """Return the columns that `read_table` would read with these options."""
    return _opened(path, format, Request(**columns), BadRows(path, strict=False))[3]


def first_labels(path: str | Path, *, format: TableFormat | None = None, **columns: Any) -> tuple[str, list[str]]:
    """Return the name of the label's column, and the labels of the first rows; those of bad rows may be among them."""
    _, _, records, layout = _opened(path, format, Request(**columns), BadRows(path, strict=False))
    cells = (row[layout.label] for _, row in islice(records, _SAMPLE) if layout.label is not None and len(row) > layout.label)
    labels = [label for cell in cells if (label := plain(_single(cell)).strip())]
    return "" if layout.label is None else layout.names[layout.label].strip(), labels


def _opened(
    path: str | Path, format: TableFormat | None, asked: Request, bad: BadRows
) -> tuple[TableFormat, str, Iterable[Record], Layout]:
    """Return the format of a file, what separates its cells, its rows without a header, and the columns to read."""
    format, separator, records = _records(path, format, bad)
    head = list(islice(records, _SAMPLE))
    if not head:
        bad.finish(0)
        raise FormatError(path, "is empty; expected a table")
    line, cells = head[0][0], [plain(cell) for cell in head[0][1]]
    if asked.labelled and len(cells) < 2 and format in ("tsv", "csv"):
        what = f"has one column, {cells[0][:20]!r}; expected a text and a label, separated by tabs"
        others = f"or in CSV ({arg('format', 'csv')}) by commas, semicolons, bars, or what a line sep=~ declares"
        advice = ["texts without labels are for `predict`", full_width_advice(cells[0], 1)]
        raise FormatError(f"{path}:{line}", "; ".join(filter(None, (f"{what}, {others}", *advice))))
    layout = choose_columns(path, head, asked, named=format in ("jsonl", "lines", "fasttext"))
    return format, separator, chain(head[int(layout.header) :], records), layout


def read_table_head(path: str | Path) -> TableHead:
    """Read the first rows of a file, for a reader with its own rules for columns (`parallel`).

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.tsv"); _ = file.write_text("en\\tde\\none\\teins\\n")
    >>> read_table_head(file)
    TableHead(format='tsv', where=1, cells=['en', 'de'], others=[['one', 'eins']])
    """
    format, _, records = _records(path, None, BadRows(path, strict=True))
    rows = [(number, [plain(cell) for cell in cells]) for number, cells in islice(records, HEAD)]
    if not rows:
        raise FormatError(path, "is empty; expected a table")
    (where, first), *others = rows
    return TableHead(format, where, first, [cells for _, cells in others])


def _records(path: str | Path, format: TableFormat | None, bad: BadRows) -> tuple[TableFormat, str, Iterator[Record]]:
    """Return the format of a file, recognised by its first lines if not given, what separates its cells, and its rows."""
    lines = _lines(path, bad)
    head = list(islice(lines, HEAD))
    format = format or _format(path, head, strict=bad.strict)
    if format not in _RECORDS:
        raise UsageError(f"{path}: unknown table format {format!r}{nearest(format, _RECORDS)}")
    separator = {"tsv": "\t", "csv": declared_separator([line for _, line in head])}.get(format, " ")
    return format, separator, _RECORDS[format](bad, chain(head, lines))


def _is_skipped(row: TableRow, layout: Layout, bad: BadRows) -> bool:
    if row.label == NO_AGREEMENT and row.second is not None:
        bad.skip(row.where, "with the label - (annotators did not agree)")
        return True
    empty = not row.first.strip() or (row.second is not None and not row.second.strip())
    return empty or (layout.label is not None and not row.label)


def _lines(path: str | Path, bad: BadRows) -> Iterator[Line]:
    folder = Path(path).expanduser()
    for number, line in enumerate(class_lines(folder), start=1) if class_folders(folder) else numbered_lines(path):
        if "\0" in line:
            bad.add(number, "with zero bytes", f"has zero bytes; {ENCODING_ADVICE}")
        else:
            yield number, line


def _format(path: str | Path, head: list[Line], *, strict: bool) -> TableFormat:
    """Recognise the format by content, then by name; raise an error if neither is enough."""
    lines = [line for _, line in head if line.strip()]
    if not lines:
        raise FormatError(path, "is empty; expected a table")
    if tagged := tagged_line(lines):
        looks = f"looks like words with their tags, one on each line ({' '.join(tagged.split())[:30]!r})"
        raise FormatError(path, f"{looks}: train `tagging` with it; if it is a table, give {arg('format')}")
    if declares_separator(lines[0]):
        return "csv"
    if are_fasttext(lines):
        return "fasttext"
    suffix = next((each.lower() for each in reversed(Path(path).suffixes) if each.lower() not in _COMPRESSED), "")
    if lines[0].startswith("{") and (suffix in (".json", ".jsonl", ".ndjson") or is_object(lines[0])):
        return "jsonl"
    if suffix in (".json", ".jsonl", ".ndjson") and not strict and lines[0].lstrip().startswith("["):
        return "jsonl"
    if suffix in (".json", ".jsonl", ".ndjson"):
        raise FormatError(f"{path}:1", f"begins with {lines[0][:20]!r}; expected JSON lines, one object {{...}} per line")
    if all("\t" in line for line in lines) or ("\t" in lines[0] and suffix != ".csv"):
        return "tsv"
    if suffix == ".csv" or has_csv_header(lines):
        return "csv"
    if suffix == ".tsv":
        return "tsv"
    as_csv, as_lines = may_be_csv(lines), are_label_lines(lines)
    if as_csv == as_lines:
        problem = "may be CSV or lines of a label and a text" if as_csv else "has no known table format"
        raise FormatError(path, f"{problem}; give {arg('format')}: {', '.join(_RECORDS)}")
    return "csv" if as_csv else "lines"


def _is_doubtful(rows: list[TableRow]) -> bool:
    """Whether the first row, taken as a text, has a label like no other."""
    labels = [row.label for row in rows if row.label]
    if len(labels) < 3 or labels[0] != rows[0].label or labels[0] in labels[1:] or NUMBER.fullmatch(labels[0]):
        return False
    return all(NUMBER.fullmatch(label) for label in labels[1:]) or len(set(labels)) < len(labels)


def _without_stray_texts(rows: list[TableRow], bad: BadRows) -> list[TableRow]:
    """Return the rows without those whose label is a part of a text: a row without a label, with a comma in its text.

    Such a label occurs once, is of several words and much longer than those that occur again, which nearly all rows have.
    """
    counts = Counter(row.label for row in rows if row.label)
    repeated = [label for label, count in counts.items() if count > 1]
    if sum(counts[label] for label in repeated) < _MIN_REPEATED * counts.total() or not repeated:
        return rows
    longest = max(map(len, repeated))
    stray = {label for label in counts if counts[label] == 1 and len(label) > _LONGER * longest and " " in label}
    for row in rows:
        if row.label in stray:
            what = f"has the label {str(row.label)[:40]!r}, unlike all others"
            bad.add(row.where, "with a text where others have a label", what)
    return [row for row in rows if row.label not in stray]


class _Rows:
    """Turns records into rows, and notes bad ones."""

    def __init__(self, layout: Layout, format: TableFormat, separator: str, bad: BadRows) -> None:
        self.layout, self.format, self.separator, self.bad = layout, format, separator, bad
        self.width = len(layout.names)
        self.header = [name.strip() for name in layout.names] if layout.header else []

    def read(self, records: Iterable[Record], known: Collection[str]) -> list[TableRow]:
        """Return all rows in their order, those without a text or a label too."""
        rows: list[TableRow] = []
        ragged: list[Record] = []
        for record in records:
            cells = record[1] if len(record[1]) == self.width else self._trimmed(record[1])
            if len(cells) != self.width:
                ragged.append(record)
            elif (row := self._row(record[0], cells)) is not None:
                rows.append(row)
        labels = {*known, *(row.label for row in rows if row.label)}
        if len(ragged) > len(rows):
            labels |= self._repeated_labels(ragged)
        found = [self._ragged(*record, labels) for record in ragged]
        return sorted([*rows, *(row for row in found if row is not None)], key=lambda row: row.where)

    def _trimmed(self, cells: Sequence[object]) -> Sequence[object]:
        """Return a row without empty cells at its end, or with them where they are missing, if not strict."""
        if self.bad.strict:
            return cells
        while len(cells) > self.width and not plain(cells[-1]).strip():
            cells = cells[:-1]
        last = max(self.layout.first, self.layout.second or 0, self.layout.label or 0)
        return [*cells, *[""] * (self.width - len(cells))] if last < len(cells) < self.width else cells

    def _row(self, number: int, cells: Sequence[object]) -> TableRow | None:
        layout, texts = self.layout, dict[str, str]()
        if layout.label is not None and not self.bad.strict and [plain(cell).strip() for cell in cells] == self.header:
            self.bad.skip(number, "that repeat the header")
            return None
        for role, column in (("text", layout.first), ("second text", layout.second), ("label", layout.label)):
            if column is None:
                continue
            name, cell = layout.names[column], cells[column]
            if role == "label" and not self.bad.strict:
                cell = _single(cell)
            if isinstance(cell, list | dict):
                what = f"has a list or an object in column {name}; expected a string for the {role}"
                if isinstance(cell, list) and role == "label":
                    what += ", because several labels of a text are not supported"
                self.bad.add(number, f"with a list or an object for the {role}", what)
                return None
            texts[role] = plain(cell)
        label = texts["label"].strip().removeprefix(PREFIX) if "label" in texts else None
        empty = next((role for role, text in texts.items() if not text.strip()), None)
        if empty is not None:
            column = {"text": layout.first, "second text": layout.second, "label": layout.label}[empty]
            what = f"has no {empty} in column {layout.names[column or 0]}; fill it, or drop the row"
            skip = f", or leave out {arg('strict')} to skip it" if self.bad.strict else ""
            self.bad.add(number, f"without a {empty}", what + skip)
        return TableRow(texts["text"], texts.get("second text"), label, number)

    def _ragged(self, number: int, cells: Sequence[object], labels: set[str]) -> TableRow | None:
        """Read a row with too many columns if its label shows which is which: the others may be at the end, or in the text."""
        layout, more = self.layout, len(cells) - self.width
        if more > 0 and not self.bad.strict:
            if self.format == "tsv" and (layout.label is None or _fits(plain(cells[layout.label]), labels)):
                return self._row(number, cells)
            if layout.second is None and layout.label is not None:
                joined = self._joined(cells)
                if _fits(plain(joined[layout.label]), labels):
                    self.bad.joined.setdefault(self.separator, []).append(number)
                    return self._row(number, joined)
        problem = f"has {count(len(cells), 'column')} and line {layout.begin} has {self.width}"
        if wide := full_width_advice("".join(map(plain, cells)), -more, self.separator):
            self.bad.add(number, f"with full-width separators, and fewer columns than {self.width}", f"{problem}: {wide}")
            return None
        problem += ": a tab, comma, semicolon, bar or quote may be wrong"
        advice = [f"or leave out {arg('strict')} to skip it"] if self.bad.strict else []
        if any(plain(cell).startswith('"') for cell in cells):
            advice.append(f"for quoted texts with tabs or line ends, use {arg('format', 'csv')}")
        fix = f"fix the line ({'; '.join(advice)})" if advice else "fix the line, such as by quotes around the text"
        self.bad.add(number, f"with {'more' if more > 0 else 'fewer'} columns than {self.width}", f"{problem}; {fix}")
        return None

    def _joined(self, cells: Sequence[object]) -> list[object]:
        """Return a row with too many cells in which those of its text are one."""
        begin, end = self.layout.first, self.layout.first + len(cells) - self.width + 1
        return [*cells[:begin], self.separator.join(map(plain, cells[begin:end])), *cells[end:]]

    def _repeated_labels(self, ragged: Sequence[Record]) -> set[str]:
        """Return the labels of a table in which every text has a comma, if nearly all rows have one that occurs again."""
        label = self.layout.label
        if label is None or self.layout.second is not None or self.bad.strict:
            return set()
        found = [self._joined(cells)[label] for _, cells in ragged if len(cells) > self.width]
        counts = Counter(text for cell in found if (text := plain(cell).strip()))
        repeated = {text for text, count in counts.items() if count > 1}
        enough = sum(counts[text] for text in repeated) >= _MIN_REPEATED * max(counts.total(), 1)
        return repeated if enough else set()


def _single(cell: object) -> object:
    """Return the label of a list that has one, as annotation tools write it, none for an empty list; else the cell.

    >>> _single(["good"]), _single([]), _single(["good", "new"]), _single("good")
    ('good', None, ['good', 'new'], 'good')
    """
    return cell if not isinstance(cell, list) or len(cell) > 1 else cell[0] if cell else None


def _fits(label: str, labels: set[str]) -> bool:
    """Whether a label is one of those of other rows, or a number as they all are."""
    label = label.strip()
    return label in labels or bool(NUMBER.fullmatch(label) and all(NUMBER.fullmatch(each) for each in labels))


def _tsv(bad: BadRows, lines: Iterable[Line]) -> Iterator[Record]:
    for number, line in lines if bad.strict else _whole_rows(list(lines)):
        if "\n" in line:
            yield number, _csv_cells(line)
        elif line:
            cells = line.split("\t")
            yield number, [_unquoted(cell) for cell in cells] if '""' in line else cells


def _whole_rows(lines: list[Line]) -> Iterator[Line]:
    """Join lines that are one row: a CSV writer quotes a cell with line ends."""
    width = next((line.count("\t") + 1 for _, line in lines if line), 0)
    at = 0
    while at < len(lines):
        end = _row_end(lines, at, width) if '"' in lines[at][1] else at + 1
        yield lines[at][0], "\n".join(line for _, line in lines[at:end])
        at = end


def _row_end(lines: list[Line], at: int, width: int) -> int:
    """Return the line after a row. In raw text a quote may never be closed: no line within a cell is a row of its own."""
    *before, last = lines[at][1].split("\t")
    if not last.startswith('"') or last.count('"') % 2 == 0:
        return at + 1
    tabs = len(before)
    for end in range(at + 1, len(lines)):
        line = lines[end][1]
        tabs += line.count("\t")
        if tabs >= width:
            break
        if line.count('"') % 2:
            whole = tabs + 1 == width == len(_csv_cells("\n".join(line for _, line in lines[at : end + 1])))
            return end + 1 if whole else at + 1
    return at + 1


def _csv_cells(row: str) -> list[str]:
    """Return the cells of a row of several lines; none if no CSV writer can have made it."""
    try:
        return next(csv_reader(io.StringIO(row, newline=""), "\t", strict=True))
    except csv.Error:
        return []


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


def _jsonl(bad: BadRows, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield the keys of the first objects as a header, then the values of each object in that order."""
    objects = _objects(bad, lines)
    head = list(islice(objects, 1 if bad.strict else HEAD))
    header = list(dict.fromkeys(key for _, row in head for key in row))
    if head:
        yield head[0][0], header
    for number, row in chain(head, objects):
        yield number, [row.get(name) for name in header]


def _objects(bad: BadRows, lines: Iterable[Line]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each object with its line, or its number in the document that holds all of them."""
    for number, line in lines if bad.strict else object_lines(bad.path, lines, _OF_A_ROW):
        if not line.strip():
            continue
        try:
            row = json_object(f"{bad.path}:{number}", line)
        except FormatError as error:
            bad.add(number, "that are not JSON objects", str(error).removeprefix(f"{bad.path}:{number}: "))
        else:
            yield number, row


_Reader = Callable[[BadRows, Iterable[Line]], Iterator[Record]]
_RECORDS: dict[str, _Reader] = {"tsv": _tsv, "csv": csv_rows, "jsonl": _jsonl, "lines": label_and_text, "fasttext": fasttext}
