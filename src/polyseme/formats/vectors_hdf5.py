"""Vectors as HDF5, exactly as bilm-tf wrote them: dataset "0" is the first line, (layers, words, dim), and so on.

The root holds nothing but the lines, so that tools which count its names still work; where the vectors come from stands
in the root's attributes. In the oldest layout of the format (h5py's default), which every version of HDF5 reads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py

from polyseme.formats.vectors import About, Damaged, Mark, Row
from polyseme.formats.vectors_hold import hold_interrupts
from polyseme.formats.vectors_pages import PageFile


class Hdf5Writer:
    """One dataset a line."""

    def __init__(self, folder: Path, about: About, mark: Mark | None) -> None:
        self._pages = PageFile(folder / "data.hdf5", mark)
        try:
            self._file = h5py.File(self._pages, "r+" if mark else "w")
        except OSError as error:
            self._pages.close()
            if self._pages.failure:
                raise self._pages.failure from None
            raise Damaged(f"data.hdf5 cannot be opened ({error})") from error
        if not mark:
            with self._refusals():
                for name, value in about.facts.items():
                    self._file.attrs[name] = value.encode("utf-8", "replace").decode("utf-8")

    def write(self, rows: Sequence[Row]) -> None:
        with self._refusals():
            for row in rows:
                self._file.create_dataset(str(row.line), data=row.vectors)

    def commit(self) -> Mark:
        with self._refusals():
            self._file.flush()
        return self._pages.commit()

    def finish(self) -> Path:
        with self._refusals(), hold_interrupts():
            self._file.close()
        self._pages.commit()
        return self._pages.finish()

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._file.close()
        self._pages.close()

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """The disk's own refusal instead of HDF5's words about it."""
        try:
            yield
        except (OSError, RuntimeError):
            if self._pages.failure:
                raise self._pages.failure from None
            raise
