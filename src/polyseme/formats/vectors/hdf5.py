"""Vectors as HDF5, exactly as bilm-tf wrote them: dataset "0" is the first line, (layers, words, dim), and so on.

The root holds nothing but the lines, so that tools which count its names still work; where the vectors come from stands
in the root's attributes. In the oldest layout of the format (h5py's default), which every version of HDF5 reads.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py

from polyseme.formats.vectors.kinds import Damaged, Row
from polyseme.formats.vectors.parts import PartsWriter

_REASON = re.compile(r"errno = (\d+), error message = '([^']*)'")


class Hdf5Writer(PartsWriter):
    """One dataset a line."""

    ending = ".hdf5"

    def create(self, path: Path) -> _File:
        file = _File(path)
        with _refusals():
            for name, value in self.about.facts.items():
                file.inside.attrs[name] = value.encode("utf-8", "replace").decode("utf-8")
        return file

    def add(self, file: _File, rows: Sequence[Row]) -> None:
        with _refusals():
            for row in rows:
                file.inside.create_dataset(str(row.line), data=row.vectors)

    def join(self, part: Path, whole: _File) -> None:
        with _refusals(), h5py.File(part, "r") as source:
            for name in sorted(source, key=int):
                whole.inside.create_dataset(name, data=source[name][...])

    def check(self, part: Path) -> None:
        try:
            h5py.File(part, "r").close()
        except OSError as error:
            raise Damaged(f"{part.name} cannot be opened ({error})") from error


class _File:
    """An HDF5 file that says in the system's words why it cannot be written."""

    def __init__(self, path: Path) -> None:
        with _refusals():
            self.inside = h5py.File(path, "w")

    def close(self) -> None:
        with _refusals():
            self.inside.close()


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """The disk's own refusal instead of HDF5's words about it."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if reason := _REASON.search(str(error)):
            raise OSError(int(reason[1]), reason[2]) from error
        if isinstance(error, RuntimeError):
            raise OSError(errno.EIO, f"HDF5 could not write ({error})") from error
        raise
