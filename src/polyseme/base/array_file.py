"""Rows of an array in a `.npy` file, by plain reads and writes.

Chosen over mapped memory, which counts as memory of the process. The system maps more around each row than was asked for: two
megabytes for 60 kB where Linux keeps files in large pages, so that random reads soon map the whole file.
"""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from polyseme.base.files import atomic


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write a whole array atomically."""
    with atomic(path) as part, part.open("wb") as file:
        np.save(file, array)


class ArrayFile:
    """An array on the disk, of which rows are read and written.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "array.npy")
    >>> ArrayFile.create(path, (3, 2), np.float32).write(1, np.ones((1, 2)))
    >>> ArrayFile(path).read(1, 2)
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        """Raise `ValueError` if the file is no whole array."""
        self._file = path.open("r+b" if writable else "rb", buffering=0)
        self._lock = threading.Lock()  # the position in the file is shared
        try:
            self.shape, self.dtype = _read_header(self._file)
        except BaseException:
            self._file.close()
            raise
        self._begin = self._file.tell()
        size, expected = path.stat().st_size, self._begin + self.nbytes
        if size < expected:
            self._file.close()
            raise ValueError(f"it has {size:,} of {expected:,} bytes")

    @classmethod
    def create(cls, path: Path, shape: tuple[int, ...], dtype: DTypeLike) -> Self:
        """Make a file of zeros, with its disk space reserved where the system can; raise `OSError` if the disk is full."""
        with path.open("wb") as file:
            header = {"descr": npy.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
            size = file.tell() + int(np.prod(shape)) * np.dtype(dtype).itemsize
            file.truncate(size)
            _reserve(file.fileno(), size)
        return cls(path, writable=True)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    def read(self, begin: int, count: int) -> NDArray[np.generic]:
        """Return some rows, from number `begin` on."""
        rows = np.empty((count, *self.shape[1:]), self.dtype)
        left = rows.reshape(-1).view(np.uint8).data
        with self._lock:
            self._seek(begin)
            while left:
                done = self._file.readinto(left)
                if not done:
                    raise OSError(f"{self._file.name} has become shorter")
                left = left[done:]
        return rows

    def write(self, begin: int, rows: NDArray[np.generic]) -> None:
        """Replace rows from number `begin` on."""
        left = np.ascontiguousarray(rows, self.dtype).reshape(-1).view(np.uint8).data
        with self._lock:
            self._seek(begin)
            while left:
                left = left[self._file.write(left) :]

    def flush(self) -> None:
        """Wait until what was written is on the disk."""
        os.fsync(self._file.fileno())

    def _seek(self, row: int) -> None:
        self._file.seek(self._begin + row * int(np.prod(self.shape[1:])) * self.dtype.itemsize)


def _reserve(file: int, size: int) -> None:
    """Set disk space aside; without it a full disk would be noticed only after long work."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):  # and not a file system without this call
                raise


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if fortran or dtype.hasobject:
        raise ValueError("it has its columns first, or objects")
    return shape, dtype
