"""JSON files of rows: one object per line, or one document that holds all of them.

A document is an array of objects; an object with one such array, as in `{"version": 1, "data": [{...}, {...}]}`; or a table by
columns, `{"text": ["...", "..."], "label": ["...", "..."]}`, which pandas writes with an index, `{"text": {"0": "...", ...}}`,
or in three parts (`orient="split"`). Its rows are numbered from 1, for messages, because they may be on one line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from polyseme.base.display import short
from polyseme.base.errors import FormatError
from polyseme.text.labelled.numbered_lines import Line, is_object

_log = logging.getLogger(__name__)
_SHOWN = 8  # fields that a message names
Row = dict[str, Any]


def object_lines(path: str | Path, lines: Iterable[Line], known: Collection[str], *, lists: bool = False) -> Iterable[Line]:
    """Return lines of one object each: those of a file, or the rows of its document.

    `known`: names of fields by which an object is a row itself. `lists`: the cells of a row are lists. A file that is not JSON
    stays as it is, since whoever reads its lines names the bad ones.

    >>> list(object_lines("a.json", [(1, '{"text": ["A", "B"],'), (2, '"label": ["x", "y"]}')], ["text"]))
    [(1, '{"text": "A", "label": "x"}'), (2, '{"text": "B", "label": "y"}')]
    """
    lines = iter(lines)
    head = list(islice((each for each in lines if each[1].strip()), 2))
    first = head[0][1].lstrip() if head else ""
    if not first.startswith(("[", "{")) or (len(head) > 1 and is_object(first)):
        return chain(head, lines)
    every = [*head, *lines]
    try:
        document = json.loads("\n".join(line for _, line in every))
    except (ValueError, RecursionError):
        return every
    rows = _rows(path, document, {name.lower() for name in known}, lists=lists)
    return [(number, json.dumps(row)) for number, row in enumerate(rows, start=1)]


def _rows(path: str | Path, document: Any, known: Collection[str], *, lists: bool) -> list[Any]:
    if isinstance(document, list):
        return document
    if any(name.lower() in known and _is_cell(value, lists) for name, value in document.items()):
        return [document]
    table = _by_columns(document, lists=lists)
    if table is not None:
        return table
    fields = [name for name, value in document.items() if _are_objects(value)]
    if len(fields) == 1:
        _log.warning("%s: its rows are those of the field %r", path, fields[0])
        rows: list[Any] = document[fields[0]]
        return rows
    if all(isinstance(value, list | dict) for value in document.values()):
        names = ", ".join(short(name, 20) for name in islice(document, _SHOWN)) + (", ..." if len(document) > _SHOWN else "")
        expected = "expected a list of rows, [{...}, {...}], or one row {...} on each line"
        raise FormatError(path, f"is one JSON object with the fields {names or 'none'}; {expected}")
    return [document]


def _is_cell(value: Any, lists: bool) -> bool:
    """Whether a value is a cell of a row: a string or a list of strings if cells are lists, else no list."""
    if not lists:
        return not isinstance(value, list | dict)
    return isinstance(value, str) or (isinstance(value, list) and not any(isinstance(each, list | dict) for each in value))


def _by_columns(document: Row, *, lists: bool) -> list[Row] | None:
    """Return the rows of an object that holds columns; None: it does not."""
    names, data = document.get("columns"), document.get("data")
    if isinstance(names, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
        return [dict(zip(map(str, names), row, strict=False)) for row in data]
    columns = list(document.values())
    if columns and all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns):
        columns = [list(column.values()) for column in columns]
    if not columns or not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return None
    if not columns[0] or not all(_is_cell(cell, lists) for column in columns for cell in column):
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
