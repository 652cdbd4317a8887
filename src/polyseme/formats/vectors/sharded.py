"""File types that cannot be appended to after a kill: each commit closes a shard, and the end merges the shards.

HDF5 rewrites its tables in place and Parquet has its table at the end, so a file that was open when its process died is lost.
A closed shard is never touched again. A single shard is the file itself; otherwise the disk holds the vectors twice while
the shards are merged.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from polyseme.encoders.embedding_stream import EmbeddedLine
from polyseme.formats.vectors.writer import BetweenSteps, DamagedPart, FileInfo, ResumePoint, nothing


class ShardedWriter(ABC):
    """Writes shards; a subclass opens, appends to, closes and merges them."""

    suffix: ClassVar[str]

    def __init__(self, folder: Path, info: FileInfo, resume: ResumePoint | None) -> None:
        self._folder, self.info = folder, info
        self._shards = resume["parts"] if resume else 0
        self._open: Any = None
        for number in range(self._shards):
            if not self._shard(number).exists():
                raise DamagedPart(f"{self._shard(number).name} is missing")
            self.check(self._shard(number))

    @abstractmethod
    def create(self, path: Path) -> Any:
        """Open a new file."""

    def create_merged(self, path: Path, size: int) -> Any:
        """Open the file that shards of `size` bytes in total are merged into."""
        return self.create(path)

    @abstractmethod
    def add(self, file: Any, rows: Sequence[EmbeddedLine]) -> None:
        """Add lines to an open file."""

    @abstractmethod
    def merge(self, shard: Path, file: Any) -> None:
        """Add all lines of a closed shard to an open file."""

    @abstractmethod
    def check(self, shard: Path) -> None:
        """Raise `DamagedPart` if a closed shard cannot be read."""

    def full(self, file: Any) -> bool:
        """Whether the next lines should go to another shard."""
        return False

    def discard(self, file: Any) -> None:
        """Close an open file that is no longer needed."""
        with contextlib.suppress(OSError, RuntimeError):
            file.close()

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        if self._open is None:
            self._open = self.create(self._shard(self._shards))
        self.add(self._open, rows)
        if self.full(self._open):
            self.commit()

    def commit(self) -> ResumePoint:
        if self._open is not None:
            file, self._open = self._open, None
            file.close()
            _sync(self._shard(self._shards))
            self._shards += 1
        return {"parts": self._shards}

    def finish(self, between: BetweenSteps = nothing) -> Path:
        if self._shards == 1:
            return self._shard(0)
        merged = self._folder / f"data{self.suffix}"
        shards = [self._shard(number) for number in range(self._shards)]
        file = self.create_merged(merged, sum(shard.stat().st_size for shard in shards))
        try:
            for shard in shards:
                between()
                self.merge(shard, file)
        except BaseException:
            self.discard(file)
            raise
        file.close()
        _sync(merged)
        return merged

    def close(self) -> None:
        file, self._open = self._open, None
        if file is not None:
            self.discard(file)

    def _shard(self, number: int) -> Path:
        return self._folder / f"part-{number:06}{self.suffix}"


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
