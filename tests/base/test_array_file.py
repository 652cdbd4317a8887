"""Arrays in files: what NumPy reads and writes, row by row."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from polyseme.base.array_file import ArrayFile


def test_numpy_reads_what_was_written(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 3, 2))
    file = ArrayFile.create(tmp_path / "a.npy", (6, 3, 2), np.float16)
    file.write(1, rows)
    expected = np.zeros((6, 3, 2), dtype=np.float16)
    expected[1:5] = rows
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), expected)


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_rows_of_what_numpy_wrote(tmp_path: Path, version: tuple[int, int]) -> None:
    array = np.arange(24, dtype=np.int64).reshape(6, 4)
    with (tmp_path / "a.npy").open("wb") as opened:
        np.lib.format.write_array(opened, array, version=version)
    file = ArrayFile(tmp_path / "a.npy")
    assert file.shape == (6, 4) and file.dtype == np.int64 and file.nbytes == array.nbytes
    np.testing.assert_array_equal(file.read(2, 3), array[2:5])
    assert file.read(6, 0).shape == (0, 4)


def test_threads_share_a_file(tmp_path: Path) -> None:
    array = np.arange(4000).reshape(1000, 4)
    np.save(tmp_path / "a.npy", array)
    file = ArrayFile(tmp_path / "a.npy")
    with ThreadPoolExecutor(4) as threads:
        for row, found in enumerate(threads.map(lambda row: file.read(row, 1), range(1000))):
            np.testing.assert_array_equal(found[0], array[row])


@pytest.mark.parametrize("content", [b"", b"no array", None])
def test_a_file_that_is_no_whole_array(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((100, 3)))
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    with pytest.raises(ValueError, match=r"bytes|magic|EOF"):
        ArrayFile(path)


def test_an_array_with_its_columns_first_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.asfortranarray(np.zeros((3, 2))))
    with pytest.raises(ValueError, match="columns first"):
        ArrayFile(tmp_path / "a.npy")
