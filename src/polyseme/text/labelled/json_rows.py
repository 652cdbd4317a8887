"""JSON files of rows: one object per line, or over several lines, or one document that holds all of them.

A document is an array of objects; an object with one such array, as in `{"version": 1, "data": [{...}, {...}]}`; or a table by
columns, `{"text": ["...", "..."], "label": ["...", "..."]}`, which pandas writes with an index, `{"text": {"0": "...", ...}}`,
by rows (`orient="index"`) or in three parts (`"split"`). Its rows are numbered from 1, for messages, because they may be on one
line.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Iterable
from itertools import chain, islice
from pathlib import Path
from typing import Any

from polyseme.base.display import short
from polyseme.base.errors import FormatError
from polyseme.text.labelled import label_studio
from polyseme.text.labelled.numbered_lines import Line, is_object

_log = logging.getLogger(__name__)
_BETWEEN = " \t\r\n,"  # objects
_NEXT_OBJECT = re.compile(rf"[{_BETWEEN}]*\{{")
_FIELDS_SHOWN = 8  # fields that a message names
Row = dict[str, Any]


def object_lines(
    path: str | Path, lines: Iterable[Line], known: Collection[str], *, lists: Collection[str] = ()
) -> Iterable[Line]:
    """Return lines of one object each: those of a file, or the rows of its document.

    `known`: names of fields by which an object is a row; `lists`: those of them that hold lists. A file that is not JSON stays
    as it is, since whoever reads its lines names the bad ones.

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
        return _objects_in_a_row(every) or every
    rows = document if isinstance(document, list) else _Document(document, known, lists).rows(path)
    if rows and all(map(label_studio.is_task, rows)):
        rows = label_studio.plain_rows(rows)
    return [(number, json.dumps(row)) for number, row in enumerate(rows, start=1)]


def _objects_in_a_row(lines: list[Line]) -> list[Line]:
    """Return objects of several lines each, one after another, as `jq` writes them; none if there is anything else."""
    text, decoder, place = "\n".join(line for _, line in lines), json.JSONDecoder(), 0
    found = list[Line]()
    while match := _NEXT_OBJECT.match(text, place):
        try:
            row, place = decoder.raw_decode(text, match.end() - 1)
        except (ValueError, RecursionError):
            return []
        found.append((len(found) + 1, json.dumps(row)))
    return [] if text[place:].strip(_BETWEEN) else found


class _Document:
    """A JSON object that holds a table, or is a row."""

    def __init__(self, fields: Row, known: Collection[str], lists: Collection[str]) -> None:
        self._fields, self._known, self._lists = fields, {name.lower() for name in known}, {name.lower() for name in lists}

    def rows(self, path: str | Path) -> list[Any]:
        fields = self._fields
        if any(self._is_cell(name, value) for name, value in fields.items() if name.lower() in self._known):
            return [fields]
        if (table := self._table()) is not None:
            return table
        inner = [name for name, value in fields.items() if _are_rows(value)]
        if len(inner) == 1:
            _log.warning("%s: its rows are those of the field %r", path, inner[0])
            rows: list[Any] = fields[inner[0]]
            return rows
        if all(isinstance(value, list | dict) for value in fields.values()):
            names = ", ".join(short(name, 20) for name in islice(fields, _FIELDS_SHOWN)) + (
                ", ..." if len(fields) > _FIELDS_SHOWN else ""
            )
            expected = "expected a list of rows, [{...}, {...}], or one row {...} on each line"
            raise FormatError(path, f"is one JSON object with the fields {names or 'none'}; {expected}")
        return [fields]

    def _is_cell(self, name: str, value: Any) -> bool:
        if name.lower() in self._lists:
            return isinstance(value, list) and not any(isinstance(each, list | dict) for each in value)
        return not isinstance(value, list | dict)

    def _table(self) -> list[Row] | None:
        """Return the rows of an object that holds a table; None: it does not."""
        names, data = self._fields.get("columns"), self._fields.get("data")
        if isinstance(names, list) and isinstance(data, list) and all(isinstance(row, list) for row in data):
            return [dict(zip(map(str, names), row, strict=False)) for row in data]
        columns = list(self._fields.values())
        if columns and all(isinstance(column, dict) and column.keys() == columns[0].keys() for column in columns):
            if any(name.lower() in self._known for name in columns[0]):
                return columns  # by rows: pandas' orient="index"
            columns = [list(column.values()) for column in columns]
        if not columns or not all(isinstance(column, list) and len(column) == len(columns[0]) > 0 for column in columns):
            return None
        named = dict(zip(self._fields, columns, strict=True))
        checked = {name: column for name, column in named.items() if name.lower() in self._known} or named
        if not all(cell is None or self._is_cell(name, cell) for name, column in checked.items() for cell in column):
            return None
        return [dict(zip(named, row, strict=True)) for row in zip(*columns, strict=True)]


def _are_rows(value: Any) -> bool:
    """Whether a value is a list of objects, or of texts with an object each; some may be empty."""
    rows = [row for row in value if row is not None] if isinstance(value, list) else []
    return bool(rows) and all(isinstance(row, dict) or is_text_with_object(row) for row in rows)


def is_text_with_object(row: Any) -> bool:
    """Whether a row is `["a text", {...}]`, as spaCy's examples were written."""
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], dict)
