"""The folder `OUT.part`, in which a file of vectors is made. It becomes OUT when it is complete, or OUT does not exist.

    lock            held by the working process, so that two of them do not write the same file
    journal.json    what is being made, how many lines are durable, and the writer's resume point
    data.*, part-*  the writer's own files

A line is done when the journal says so, and the journal says so only after the data is on the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from polyseme.base.errors import PolysemeError
from polyseme.base.files import sync_folder
from polyseme.base.lock import lock_file


class PartFolder:
    """The work on one file, as a context manager."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.with_name(f"{out.name}.part")

    def __enter__(self) -> Self:
        if self.out.is_dir():
            raise PolysemeError(f"cannot write {self.out}: it is a folder")
        busy = f"another process is writing {self.out}: wait for it, or stop it"
        self._lock = contextlib.ExitStack()
        self._lock.enter_context(lock_file(self.folder / "lock", busy=busy, remove=False))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        journal = self.journal() if error is not None else None
        if error is not None and not (journal or {}).get("lines"):  # nothing to resume
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()

    def journal(self) -> dict[str, Any] | None:
        """Return what an earlier run left; None if there is nothing to resume."""
        try:
            value = json.loads((self.folder / "journal.json").read_bytes())
        except (OSError, ValueError):
            return None
        return value if isinstance(value, dict) and {"about", "lines", "digest", "mark"} <= set(value) else None

    def save(self, journal: dict[str, Any]) -> None:
        new = self.folder / "journal.new"
        with new.open("w", encoding="utf-8") as file:
            json.dump(journal, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.folder / "journal.json")
        sync_folder(self.folder)

    def clear(self) -> None:
        """Remove all work; the journal goes first, so that it never refers to files that are gone."""
        (self.folder / "journal.json").unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if path.name != "lock":
                path.unlink()

    def finish(self, complete: Path) -> None:
        """Move the complete file to its name and remove the folder."""
        complete.replace(self.out)
        sync_folder(self.out.parent)
        (self.folder / "journal.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
