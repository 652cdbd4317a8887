"""Kinds of file that cannot be added to after a kill: each commit closes a part of its own, and the end joins the parts.

HDF5 rewrites its tables in place and Parquet has its table at the end, so a file that was open when its process died is lost.
A closed part is never touched again. Where all lines fell into one part, that part is the file; otherwise, while the
parts are being joined, the disk holds the vectors twice.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from polyseme.formats.vectors.writer import BetweenSteps, DamagedPart, EmbeddedLine, FileInfo, ResumePoint, nothing


class ShardedWriter(ABC):
    """A writer in parts; a kind says how a part is opened, added to, closed and joined."""

    suffix: ClassVar[str]

    def __init__(self, folder: Path, about: FileInfo, mark: ResumePoint | None) -> None:
        self._folder, self.about = folder, about
        self._parts = mark["parts"] if mark else 0
        self._open: Any = None
        for number in range(self._parts):
            if not self._part(number).exists():
                raise DamagedPart(f"{self._part(number).name} is gone")
            self.check(self._part(number))

    @abstractmethod
    def create(self, path: Path) -> Any:
        """Open a new file."""

    def create_whole(self, path: Path, size: int) -> Any:
        """Open the file that the parts, of `size` bytes together, are joined into."""
        return self.create(path)

    @abstractmethod
    def add(self, file: Any, rows: Sequence[EmbeddedLine]) -> None:
        """Add lines to an open file."""

    @abstractmethod
    def join(self, part: Path, whole: Any) -> None:
        """Add all lines of a closed part to an open file."""

    @abstractmethod
    def check(self, part: Path) -> None:
        """`DamagedPart` where a part that was closed cannot be read."""

    def full(self, file: Any) -> bool:
        """Whether a part holds as much as it should; the next rows then go to another."""
        return False

    def drop(self, file: Any) -> None:
        """Let go of an open file that is not wanted any more."""
        with contextlib.suppress(OSError, RuntimeError):
            file.close()

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        if self._open is None:
            self._open = self.create(self._part(self._parts))
        self.add(self._open, rows)
        if self.full(self._open):
            self.commit()

    def commit(self) -> ResumePoint:
        if self._open is not None:
            file, self._open = self._open, None
            file.close()
            _sync(self._part(self._parts))
            self._parts += 1
        return {"parts": self._parts}

    def finish(self, between: BetweenSteps = nothing) -> Path:
        if self._parts == 1:
            return self._part(0)
        whole = self._folder / f"data{self.suffix}"
        parts = [self._part(number) for number in range(self._parts)]
        file = self.create_whole(whole, sum(part.stat().st_size for part in parts))
        try:
            for part in parts:
                between()
                self.join(part, file)
        except BaseException:
            self.drop(file)
            raise
        file.close()
        _sync(whole)
        return whole

    def close(self) -> None:
        file, self._open = self._open, None
        if file is not None:
            self.drop(file)

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:06}{self.suffix}"


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
