"""Rows of CSV (RFC 4180): cells may be quoted and span several lines.

Commas separate them, or semicolons, tabs or bars: what divides the first line into names of columns, or all lines into as many
cells; or what a first line such as `sep=;` says.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.column_names import QUOTED, is_header
from polyseme.text.labelled.numbered_lines import Line
from polyseme.text.labelled.table_columns import Record

if TYPE_CHECKING:
    from _csv import Reader

_ESCAPED = re.compile(r'(?<!\\)\\"')
MAX_CELL = 1 << 27  # characters: a document may be one cell
HEAD = 200  # lines by which the separator is recognised
SEPARATORS = (",", ";", "\t", "|")
_FULL_WIDTH = {",": "，", ";": "；"}
"""Separators as Chinese input methods write them."""
_DECLARED = re.compile(r'"?sep=([^"\w ])"?', re.IGNORECASE)
"""A first line that tells Excel the separator."""


def csv_reader(lines: Iterable[str], separator: str, *, strict: bool = False) -> Reader:
    """Return Python's CSV reader, for cells of up to `MAX_CELL` characters.

    Python's limit is 131,072. It belongs to the process, not to a reader, so it is only ever raised.
    """
    if csv.field_size_limit() < MAX_CELL:
        csv.field_size_limit(MAX_CELL)
    return csv.reader(lines, delimiter=separator, strict=strict)


def full_width_advice(text: str, missing: int, separators: Sequence[str] = tuple(_FULL_WIDTH)) -> str:
    """Return what to do with a line that lacks columns, if it has at least as many full-width separators; else nothing.

    >>> full_width_advice("不错，好评", 1)
    'its commas may be full-width (，): replace those between columns by ,'
    >>> full_width_advice("不错，好评", 2), full_width_advice("不错，好评", 1, ";")
    ('', '')
    """
    for each in separators:
        if 0 < missing <= text.count(wide := _FULL_WIDTH.get(each, "")) and wide:
            name = "commas" if each == "," else "semicolons"
            return f"its {name} may be full-width ({wide}): replace those between columns by {each}"
    return ""


def declares_separator(line: str) -> bool:
    """Whether a line tells Excel the separator: `sep=;`."""
    return _DECLARED.fullmatch(line) is not None


def has_csv_header(lines: Sequence[str]) -> bool:
    """Whether a separator divides the first line into names of columns."""
    rows = _head(lines[:1], separator_of(lines))
    return bool(rows) and len(rows[0]) > 1 and is_header(rows[0])


def may_be_csv(lines: Sequence[str]) -> bool:
    """Whether a separator divides the first line into names of columns, or all lines into as many cells."""
    return has_csv_header(lines) or _divides_alike(lines, separator_of(lines))


def declared_separator(lines: Sequence[str]) -> str:
    """Return what separates the cells of a file with these first lines: what it declares, or what they show."""
    lines = [line for line in lines[:HEAD] if line.strip()]
    declared = _DECLARED.fullmatch(lines[0]) if lines else None
    return declared[1] if declared else separator_of(lines)


def separator_of(lines: Sequence[str]) -> str:
    """Return what separates the cells of these lines of CSV; in doubt the first that the first line has outside quotes.

    >>> separator_of(["text|label", "So, so|1"]), separator_of(["So, so|1", "Good|1"]), separator_of(["a;b,c", "d;e"])
    ('|', '|', ';')
    """
    bare = QUOTED.sub("", lines[0]) if lines else ""
    found = [each for each in SEPARATORS if each in bare]
    for each in found:
        if is_header(_head(lines[:1], each)[0]):
            return each
    return next((each for each in found if _divides_alike(lines, each)), found[0] if found else ",")


def _divides_alike(lines: Sequence[str], separator: str) -> bool:
    sizes = {len(row) for row in _head(lines, separator)}
    return len(sizes) == 1 and sizes != {1}


def _head(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Return the rows of the first lines, without a last one that may be cut; none if they are not CSV."""
    try:
        rows = [row for row in csv_reader((f"{line}\n" for line in lines[:HEAD]), separator) if row]
    except csv.Error:
        return [[]]
    return rows[:-1] if len(lines) >= HEAD else rows


def csv_rows(bad: BadRows, lines: Iterable[Line]) -> Iterator[Record]:
    """Yield the rows of CSV, each with its first line; what is not CSV is noted, or if not strict read as it is."""
    numbered = [(number, line) for number, line in lines]
    first = next((number for number, (_, line) in enumerate(numbered) if line.strip()), 0)
    numbered = numbered[first:] if bad.strict else _with_doubled_quotes(numbered[first:])
    separator = declared_separator([line for _, line in numbered[:HEAD]])
    begin = 1 if numbered and declares_separator(numbered[0][1]) else 0
    while begin < len(numbered):
        reader = csv_reader((f"{line}\n" for _, line in numbered[begin:]), separator, strict=True)
        start = begin
        try:
            for cells in reader:
                if cells:
                    yield numbered[begin][0], cells
                begin = start + reader.line_num
        except csv.Error as error:
            line, text = numbered[begin]
            what = f"begins a row that is not CSV ({error})"
            advice = f"quote texts with {separator!r} or quotes, and double the quotes inside"
            if bad.strict:
                bad.add(line, "that are not CSV", f"{what}; {advice}")
            elif text:  # a quote that no other closes is a character like any other
                yield line, text.split(separator)
            begin += 1
        else:
            return


def _with_doubled_quotes(numbered: list[Line]) -> list[Line]:
    """Return lines in which quotes inside cells are doubled, where they have a backslash before them (MySQL, Spark).

    More of these lines are CSV then: one whose cell ends in a backslash is CSV as it is.
    """
    lines = [line for _, line in numbered if _ESCAPED.search(line)]
    if not lines:
        return numbered
    separator = declared_separator([_ESCAPED.sub('""', line) for _, line in numbered[:HEAD]])
    more = sum(_is_csv(_ESCAPED.sub('""', line), separator) - _is_csv(line, separator) for line in lines)
    return [(number, _ESCAPED.sub('""', line)) for number, line in numbered] if more > 0 else numbered


def _is_csv(line: str, separator: str) -> bool:
    try:
        return bool(list(csv_reader([line], separator, strict=True)))
    except csv.Error:
        return False
