"""Writers of files that are only appended to: JSON lines and npz. The resume point is the size; resuming truncates to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, ClassVar

from polyseme.formats.vectors.writer import BetweenSteps, DamagedPart, FileInfo, ResumePoint, nothing


class AppendWriter:
    """Appends bytes to `file`; `commit` makes them durable. A subclass writes lines, and what comes after them."""

    name: ClassVar[str]

    def __init__(self, folder: Path, info: FileInfo, resume: ResumePoint | None) -> None:
        self.path = folder / self.name
        self.file: BinaryIO
        if resume is None:
            self.file = self.path.open("w+b")
            return
        try:
            self.file = self.path.open("r+b")
        except FileNotFoundError as error:
            raise DamagedPart(f"{self.name} is missing") from error
        if self.file.seek(0, os.SEEK_END) < resume["size"]:
            self.file.close()
            raise DamagedPart(f"{self.name} is shorter than it was")
        self.file.truncate(resume["size"])
        self.file.seek(resume["size"])

    def commit(self) -> ResumePoint:
        self.file.flush()
        os.fsync(self.file.fileno())
        return {"size": self.file.tell()}

    def finish(self, between: BetweenSteps = nothing) -> Path:
        return self.path

    def close(self) -> None:
        self.file.close()
