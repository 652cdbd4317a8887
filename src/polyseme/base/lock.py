"""One process at a time in the folder of a run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.files import wrap_os_errors

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

LOCK = ".lock"


@contextlib.contextmanager
def lock_run_folder(folder: Path) -> Iterator[None]:
    """A block for one process of this machine; another one that holds the folder is an error.

    Two runs in one folder would write over each other's models, each believing that its own was kept. A killed process loses
    its lock by itself; where the system or the disk has no locks, nothing is checked.
    """
    if fcntl is None:
        yield
        return
    path = folder / LOCK
    with wrap_os_errors(path, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        file = _locked(path)
    with file:
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _locked(path: Path) -> Any:
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise PolysemeError(
                f"another process trains in {path.parent.parent}: wait until it is done, or choose another folder"
            ) from None
        except OSError:  # a disk without locks
            return file
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # its holder has just removed it, and another process may hold a new one
