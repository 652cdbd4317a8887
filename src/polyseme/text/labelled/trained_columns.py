"""Tables whose columns have other names than those of the training data, where these were a guess: they are found anew.

Columns that the user named stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.base.errors import UsageError
from polyseme.text.labelled.column_names import is_header
from polyseme.text.labelled.table_columns import Layout, warn_once
from polyseme.text.labelled.tables import file_layout

COLUMNS = ("text", "second", "label")


def columns_of_file(path: str | Path, columns: dict[str, Any], guessed: Sequence[str]) -> dict[str, Any]:
    """Return the columns to read, as options of `read_table`: those of the training data, or else those that are found.

    `guessed`: the options that were a guess in training.
    """
    if not guessed:
        return columns
    trained = ", ".join(f"{role}: {columns[role]!r}" for role in COLUMNS if role in guessed and columns[role] is not None)
    missing = f"the task was trained with the columns {trained}, which this file lacks"
    try:
        if _has_trained_columns(file_layout(path, **columns)):
            return columns
    except UsageError:
        pass  # without such columns
    anew = {**columns, **dict.fromkeys(guessed)}
    try:
        layout = file_layout(path, **anew)
    except UsageError as error:
        raise UsageError(f"{error} ({missing})") from error
    options = layout.options()
    warn_once(f"{path}: {missing}; columns {', '.join(f'{role}: {options[role]!r}' for role in COLUMNS if role in options)}")
    return {**anew, **options}


def _has_trained_columns(layout: Layout) -> bool:
    """Whether columns by number are not those of a file that has names after all."""
    return layout.header or not is_header(layout.cells)
