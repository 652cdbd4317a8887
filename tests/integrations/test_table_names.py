"""Tables in memory: log messages name the argument, whatever other threads and libraries do with logging."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PureWindowsPath
from typing import cast

import pytest

from polyseme.api.table_files import TableFolder, folder_for_tables


def test_paths_of_windows_have_backslashes() -> None:
    folder = TableFolder(cast(Path, PureWindowsPath(r"C:\Temp\polyseme-1")))
    assert folder.named(rf"{folder.path / 'data.jsonl'}:3: is empty") == "data row 2: is empty"


def test_rows_are_counted_from_0() -> None:
    folder = TableFolder(Path("/tmp/polyseme-1"))
    assert folder.named("/tmp/polyseme-1/data.jsonl: 2 rows (lines 1, 10 ...)") == "data: 2 rows (rows 0, 9 ...)"
    assert folder.named("/tmp/polyseme-1/dev.jsonl:3: is bad (line 3)") == "dev row 2: is bad (row 2)"
    assert folder.named("a.csv: 2 rows (lines 1, 10)") == "a.csv: 2 rows (lines 1, 10)"


def test_messages_of_threads_name_their_arguments(caplog: pytest.LogCaptureFixture) -> None:
    log, other = logging.getLogger("polyseme.test"), logging.getLogger("another")

    def tell(number: int) -> str:
        with folder_for_tables() as folder:
            file = folder.path / "data.tsv"
            log.warning("%s: row %d is empty", file, number)
            other.warning("%s of another library", file)
            return str(file)

    with ThreadPoolExecutor(4) as threads:
        files = list(threads.map(tell, range(20)))
    found = [record.getMessage() for record in caplog.records]
    assert sorted(text for text in found if "row" in text) == sorted(f"data: row {number} is empty" for number in range(20))
    assert sorted(text for text in found if "another" in text) == sorted(f"{file} of another library" for file in files)


def test_a_factory_of_another_library_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with folder_for_tables():
        before = logging.getLogRecordFactory()
        made: list[logging.LogRecord] = []

        def factory(*arguments: object, **options: object) -> logging.LogRecord:
            made.append(before(*arguments, **options))
            return made[-1]

        logging.setLogRecordFactory(factory)
    try:
        with folder_for_tables() as folder:
            logging.getLogger("polyseme.test").warning("%s/data.tsv is empty", folder.path)
    finally:
        logging.setLogRecordFactory(before)
    assert [record.getMessage() for record in made] == ["data is empty"]
