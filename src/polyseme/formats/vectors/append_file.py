"""A file that is only appended to, for JSON lines and npz. Its resume point is its size; resuming truncates it to that."""

from __future__ import annotations

import os
from pathlib import Path

from polyseme.formats.vectors.writer import DamagedPart, ResumePoint


class AppendFile:
    """Bytes go to the end; `commit` makes them durable."""

    def __init__(self, path: Path, resume: ResumePoint | None) -> None:
        self.path = path
        if resume is None:
            self._file = path.open("w+b")
            return
        try:
            self._file = path.open("r+b")
        except FileNotFoundError as error:
            raise DamagedPart(f"{path.name} is missing") from error
        if self._file.seek(0, os.SEEK_END) < resume["size"]:
            self._file.close()
            raise DamagedPart(f"{path.name} is shorter than it was")
        self._file.truncate(resume["size"])
        self._file.seek(resume["size"])

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        self._file.write(data)

    def flush(self) -> None:
        """Do nothing: only a commit makes bytes durable."""

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._file.tell()

    def commit(self) -> ResumePoint:
        """Write all bytes so far to the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return {"size": self.size}

    def close(self) -> None:
        """Close the file."""
        self._file.close()
