"""The column of a table whose texts are predicted: the one that is named, that of the training data, or a well-known one.

Each row is a line, also one without a text, so that predictions stay beside their rows; a row whose columns are unclear is an
error.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from polyseme.base.display import short
from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.tasks.base import Task
from polyseme.text.files.lines import TABLE_NAMES, TableLines
from polyseme.text.labelled.column_names import TEXTS
from polyseme.text.labelled.csv_rows import full_width_advice
from polyseme.text.labelled.table_columns import Layout
from polyseme.text.labelled.tables import TableRow, file_layout, read_table

_log = logging.getLogger(__name__)
_BREAKS = re.compile(r"[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def lines_of_table(task: Task, path: Path, text: str | None, second: str | None) -> TableLines | None:
    """Return the texts of a table as lines of `predict`; None: the file is lines of text.

    `text`, `second`: columns by name or number. A file that is a table by its name must have a column that is evident.
    """
    is_named = text is not None or second is not None
    found = TABLE_NAMES.search(path.name)
    kind = "" if found is None else {"csv": "CSV", "tsv": "TSV"}.get(found[1].lower(), "JSON")
    if not is_named and (not kind or (kind == "TSV" and not task.texts_per_line)):
        return None
    if not task.texts_per_line:
        raise UsageError(f"{task.kind} takes plain text, and no column of a table: give a file of the texts alone")
    layout = _named_layout(task, path, text, second) if is_named else _evident_layout(task, path)
    if layout is None:
        if kind == "TSV":  # its lines may be the texts of pairs
            return None
        needed = " and ".join(map(arg, ("text", "second")[: task.texts_per_line]))
        raise UsageError(f"{path} is {kind}, and no column is evidently the text: give {needed}{_columns(path)}")
    if not is_named:
        chosen = layout.options()
        used = ", ".join(f"{role}: {chosen[role]!r}" for role in ("text", "second") if role in chosen)
        _log.warning("%s: columns %s; %s names another", path, used, arg("text"))
    columns: dict[str, Any] = {name: value for name, value in layout.options().items() if name != "label"}
    columns |= {"labelled": False, "strict": False}
    rows = _rows(path, columns)
    texts = ["\t".join(_BREAKS.sub(" ", each) for each in (row.first, row.second) if each is not None) for row in rows]
    return TableLines(texts, str(path), [row.where for row in rows], columns)


def _named_layout(task: Task, path: Path, text: str | None, second: str | None) -> Layout:
    if (text is None) or (second is None) != (task.texts_per_line == 1):
        one, two = f"{task.kind} reads one text of a row: give {arg('text')}", f"give {arg('text')} and {arg('second')}"
        raise UsageError(one if task.texts_per_line == 1 else f"{task.kind} reads two texts of a row: {two}")
    return file_layout(path, text=text, second=second, labelled=False, strict=False)


def _evident_layout(task: Task, path: Path) -> Layout | None:
    """The columns of the training data, or those with well-known names; None: neither."""
    config: Any = task.config
    first = getattr(config, "text", None) or getattr(config, "source", None)
    trained = [{"text": first, "second": getattr(config, "second", None)}] if isinstance(first, str) else []
    for columns in (*trained, {}, *_well_known_text(task, path)):
        try:
            layout = file_layout(path, **columns, labelled=False, strict=True)
        except (UsageError, FormatError):
            continue
        if layout.header and (layout.second is None) == (task.texts_per_line == 1):
            return layout
    return None


def _well_known_text(task: Task, path: Path) -> list[dict[str, Any]]:
    """The only column with a well-known name, also a name that without a label's beside it might be content."""
    cells = file_layout(path, text="0", labelled=False, strict=False).cells if task.texts_per_line == 1 else []
    found = [cell for cell in map(str.strip, cells) if cell.lower() in TEXTS]
    return [{"text": found[0]}] if len(found) == 1 else []


def _rows(path: Path, columns: dict[str, Any]) -> list[TableRow]:
    table = read_table(path, **columns)
    rows = sorted([*table.rows, *table.skipped], key=lambda row: row.where)
    read = {row.where for row in rows}
    assert table.bad is not None
    lost = [(line, what) for line, what in table.bad.errors if line not in read]
    if lost:
        raise FormatError(f"{path}:{lost[0][0]}", f"{lost[0][1]}; each row gets a prediction, so nothing was predicted")
    return rows


def _columns(path: Path) -> str:
    """The cells of the first row, for a message; raise if the file is no table, which is then the cause."""
    try:
        cells = file_layout(path, text="0", labelled=False, strict=False).cells
    except UsageError:
        return ""
    advice = full_width_advice(cells[0], 1) if len(cells) == 1 else ""
    first = f"; its first row: {', '.join(repr(short(cell, 20)) for cell in cells)}"
    return f"{first}; {advice}" if advice else first
