"""Vectors as HDF5, exactly as bilm-tf wrote them: dataset "0" is the first line, (layers, words, dim), and so on.

The root holds only the lines, so that tools that count its names still work; its attributes say where the vectors come from.
The file has the oldest layout of the format (h5py's default), which every version of HDF5 reads.

HDF5 does not survive a full disk: it keeps what it could not write, tries again when the process ends, and crashes. So a
shard is made in memory and written as plain bytes. Only shards that do not fit in memory together are merged by HDF5 on the
disk, after a check that there is room.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import h5py

from polyseme.encoders.embedding_stream import EmbeddedLine
from polyseme.formats.hdf5 import in_memory
from polyseme.formats.vectors.sharded import ShardedWriter
from polyseme.formats.vectors.writer import DamagedPart

try:
    import resource
except ImportError:  # a system without limits on files (Windows)
    resource = None  # type: ignore[assignment]

SHARD_BYTES = 1 << 24  # bytes of a shard; its image, made when it is written, takes as much again
_TABLES = 1.05  # size of a merged file relative to its shards, whose tables of names are smaller
_DATASET = 512  # bytes that HDF5 keeps about each dataset
_REASON = re.compile(r"errno = (\d+), error message = '([^']*)'")


class Hdf5Writer(ShardedWriter):
    """One dataset per line."""

    suffix = ".hdf5"

    def create(self, path: Path) -> _InMemory:
        file = _InMemory(path)
        self._set_attributes(file.inside)
        return file

    def create_merged(self, path: Path, size: int) -> _InMemory | _OnDisk:
        if size <= SHARD_BYTES:
            return self.create(path)
        _check_room(path, int(size * _TABLES))
        file = _OnDisk(path)
        with _system_errors():
            self._set_attributes(file.inside)
        return file

    def add(self, file: _InMemory, rows: Sequence[EmbeddedLine]) -> None:
        for row in rows:
            file.inside.create_dataset(str(row.line), data=row.vectors)
            file.held += row.vectors.nbytes + _DATASET

    def full(self, file: _InMemory) -> bool:
        return file.held >= SHARD_BYTES

    def merge(self, shard: Path, file: _InMemory | _OnDisk) -> None:
        with _system_errors(), h5py.File(shard, "r") as source:
            for name in sorted(source, key=int):
                file.inside.create_dataset(name, data=source[name][...])

    def check(self, shard: Path) -> None:
        try:
            h5py.File(shard, "r").close()
        except OSError as error:
            raise DamagedPart(f"{shard.name} cannot be opened ({error})") from error

    def discard(self, file: _InMemory | _OnDisk) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            file.inside.close()

    def _set_attributes(self, file: h5py.File) -> None:
        for name, value in self.info.metadata.items():
            file.attrs[name] = value.encode("utf-8", "replace").decode("utf-8")


class _InMemory:
    """An HDF5 file that is written to the disk as plain bytes when it is closed."""

    def __init__(self, path: Path) -> None:
        self.inside, self.held, self._path = in_memory(), 0, path

    def close(self) -> None:
        try:
            self.inside.flush()
            image = self.inside.id.get_file_image()
        finally:
            self.inside.close()
        self._path.write_bytes(image)


class _OnDisk:
    """An HDF5 file on the disk; a failed write raises the system's error."""

    def __init__(self, path: Path) -> None:
        with _system_errors():
            self.inside = h5py.File(path, "w")

    def close(self) -> None:
        with _system_errors():
            self.inside.close()


def _check_room(path: Path, size: int) -> None:
    """Raise the system's error if there is no room for a file."""
    if shutil.disk_usage(path.parent).free < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if resource is None:
        return
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < size:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))


@contextlib.contextmanager
def _system_errors() -> Iterator[None]:
    """Raise the system's error instead of HDF5's."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        if reason := _REASON.search(str(error)):
            raise OSError(int(reason[1]), reason[2]) from error
        if isinstance(error, RuntimeError):
            raise OSError(errno.EIO, f"HDF5 could not write ({error})") from error
        raise
