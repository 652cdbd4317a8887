"""Tables in memory (datasets, data frames) as files of a task, which messages call by the name of their argument.

The readers of files check and repair what they read, so a table becomes a file in a temporary folder. Nobody else sees it:
errors, messages and reports say `data`, `dev` or `test`, and count its rows from 0, as pandas shows them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.text.labelled.dataset_files import TABLE_FOLDER, is_dataset, write_dataset

if TYPE_CHECKING:
    from polyseme.tasks.error_analysis import ErrorReport

_COLUMNS = ("column", "word_column")
"""Options of taggers that a file of a table needs no more."""
_LINES = re.compile(r"\b(lines?) (\d+(?:, \d+)*)(?=(?: \.\.\.)?\))")
"""Lines in a message: (line 3), (lines 1, 5 ...)."""


@dataclasses.dataclass(frozen=True)
class TableFolder:
    """A temporary folder for tables."""

    path: Path

    def files(self, task: str, data: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call, tables among them written as files of the task."""
        from polyseme.tasks.registry import task_name

        kind = task_name(task)
        columns = {name: given.get(name) for name in _COLUMNS}
        tables = {name: each for name, each in data.items() if is_dataset(each)}
        others = [name for name, each in data.items() if each is not None and name not in tables]
        if kind == "tagging" and tables and others and any(columns.values()):
            mixed = f"{' and '.join(tables)} are tables, {' and '.join(others)} files"
            raise UsageError(f"{mixed}, which have columns of their own: give all as tables or all as files")
        files = {name: write_dataset(each, kind, self.path, name, **columns) for name, each in tables.items()}
        left = {name: value for name, value in given.items() if kind != "tagging" or name not in _COLUMNS}
        return {**data, **files, **left}

    def named(self, text: str) -> str:
        """Return a text in which files of the folder have the names of arguments, and their lines the numbers of rows."""
        file = rf"{re.escape(str(self.path))}[/\\](\w+)\.\w+"
        if re.search(rf"{file}(?<=\.jsonl)", text):  # JSON lines: one for each row
            text = _LINES.sub(_rows, text)
        text = re.sub(rf"{file}(?<=\.jsonl):(\d+)", lambda found: f"{found[1]} row {int(found[2]) - 1}", text)
        return re.sub(file, r"\1", text)

    def named_report(self, report: ErrorReport) -> ErrorReport:
        """Return a report whose files have the names of arguments."""
        worst = [
            dataclasses.replace(each, where=self.named(each.where), equal=tuple(map(self.named, each.equal)))
            for each in report.worst
        ]
        unknown = [dataclasses.replace(each, where=self.named(each.where)) for each in report.unknown_labels]
        return dataclasses.replace(report, path=self.named(report.path), worst=worst, unknown_labels=unknown)


def _rows(lines: re.Match[str]) -> str:
    """Lines from 1 as rows from 0."""
    return f"{lines[1].replace('line', 'row')} {', '.join(str(int(line) - 1) for line in lines[2].split(', '))}"


@contextlib.contextmanager
def folder_for_tables() -> Iterator[TableFolder]:
    """A folder for tables as files; within the block, errors and log messages name the arguments."""
    with tempfile.TemporaryDirectory(prefix=TABLE_FOLDER) as path:
        folder = TableFolder(Path(path))
        _log_names.add(folder)
        try:
            yield folder
        except PolysemeError as error:
            error.args = (folder.named(str(error)),)
            raise
        finally:
            _log_names.remove(folder)


class _LogNames:
    """Renames the files of folders in our log messages; in place from the first table on, also for several threads."""

    def __init__(self) -> None:
        self._folders: list[TableFolder] = []
        self._lock = threading.Lock()
        self._make: Callable[..., logging.LogRecord] | None = None

    def add(self, folder: TableFolder) -> None:
        with self._lock:
            self._folders.append(folder)
            if self._make is None:
                self._make = logging.getLogRecordFactory()
                logging.setLogRecordFactory(self)

    def remove(self, folder: TableFolder) -> None:
        with self._lock:
            self._folders.remove(folder)

    def __call__(self, *arguments: Any, **options: Any) -> logging.LogRecord:
        assert self._make is not None
        record = self._make(*arguments, **options)
        if record.name.startswith("polyseme."):
            for folder in list(self._folders):
                if str(folder.path) in (text := record.getMessage()):
                    record.msg, record.args = folder.named(text), ()
        return record


_log_names = _LogNames()
