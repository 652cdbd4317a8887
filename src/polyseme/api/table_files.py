"""Tables in memory (datasets, data frames) as files of a task, which messages call by the name of their argument.

The readers of files check and repair what they read, so a table becomes a file in a temporary folder. Nobody else sees it:
errors, messages and reports say `data`, `dev` or `test`. In a table of texts the line, from 1, is that of the row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.errors import PolysemeError
from polyseme.text.labelled.dataset_files import is_dataset, write_dataset

if TYPE_CHECKING:
    from polyseme.tasks.error_analysis import ErrorReport


@dataclasses.dataclass(frozen=True)
class TableFolder:
    """A temporary folder for tables."""

    path: Path

    def files(self, task: str, data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call, tables among them written as files of the task."""
        from polyseme.tasks.registry import task_name

        column, kind = given.get("column"), task_name(task)
        tables = {name: write_dataset(each, kind, self.path, name, column) for name, each in data.items() if is_dataset(each)}
        return {**data, **tables, **{name: value for name, value in given.items() if kind != "tagging" or name != "column"}}

    def named(self, text: str) -> str:
        """Return a text in which files of the folder have the names of arguments."""
        return re.sub(rf"{re.escape(str(self.path))}/(\w+)\.\w+", r"\1", text)

    def named_report(self, report: ErrorReport) -> ErrorReport:
        """Return a report whose files have the names of arguments."""
        worst = [dataclasses.replace(each, where=self.named(each.where)) for each in report.worst]
        unknown = [dataclasses.replace(each, where=self.named(each.where)) for each in report.unknown_labels]
        return dataclasses.replace(report, path=self.named(report.path), worst=worst, unknown_labels=unknown)


@contextlib.contextmanager
def folder_for_tables() -> Iterator[TableFolder]:
    """A folder for tables as files; within the block, errors and log messages name the arguments."""
    with tempfile.TemporaryDirectory(prefix="polyseme-") as path:
        folder, before = TableFolder(Path(path)), logging.getLogRecordFactory()

        def record(*arguments: Any, **options: Any) -> logging.LogRecord:
            made = before(*arguments, **options)
            if made.name.startswith("polyseme.") and str(folder.path) in (text := made.getMessage()):
                made.msg, made.args = folder.named(text), ()
            return made

        logging.setLogRecordFactory(record)
        try:
            yield folder
        except PolysemeError as error:
            error.args = (folder.named(str(error)),)
            raise
        finally:
            logging.setLogRecordFactory(before)
