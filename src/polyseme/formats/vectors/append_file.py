"""A file that only grows: what JSON lines and npz share. Its mark is its size; going on means cutting it to that."""

from __future__ import annotations

import os
from pathlib import Path

from polyseme.formats.vectors.writer import DamagedPart, ResumePoint


class AppendFile:
    """Bytes go to the end; `commit` makes them safe."""

    def __init__(self, path: Path, mark: ResumePoint | None) -> None:
        self.path = path
        if mark is None:
            self._file = path.open("w+b")
            return
        try:
            self._file = path.open("r+b")
        except FileNotFoundError as error:
            raise DamagedPart(f"{path.name} is gone") from error
        if self._file.seek(0, os.SEEK_END) < mark["size"]:
            self._file.close()
            raise DamagedPart(f"{path.name} is shorter than it was")
        self._file.truncate(mark["size"])
        self._file.seek(mark["size"])

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes at the end."""
        self._file.write(data)

    def flush(self) -> None:
        """Nothing to do: only a commit makes anything safe."""

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def commit(self) -> ResumePoint:
        """All bytes so far are on the disk when this returns."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"size": self.size}

    def close(self) -> None:
        """Let go of it."""
        self._file.close()
