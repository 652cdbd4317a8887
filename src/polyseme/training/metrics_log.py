"""The log of a run: `log.jsonl`, one JSON object per line, and TensorBoard if the package is installed.

A resumed run truncates the log to where its checkpoint was, so that no step is logged twice.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from io import FileIO
from pathlib import Path
from typing import Any, Self

from polyseme.base.files import wrap_os_errors

_log = logging.getLogger(__name__)


class MetricsLog:
    """The log, open in the main process; other processes have no folder and write nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: FileIO | None = None
        self._board: Any = None

    def open(self, *, size: int = 0, step: int = 0) -> None:
        """Open the log after its first `size` bytes, which were written up to `step`."""
        if self._folder is None:
            return
        path = self._folder / "log.jsonl"
        with wrap_os_errors(path, "write"):
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)  # unbuffered: nothing is left to write when a full disk ends the run
            self._file.truncate(min(size, path.stat().st_size))
        self._board = _tensorboard(self._folder / "tensorboard", step)

    def write(self, step: int, kind: str, values: dict[str, Any]) -> None:
        """Write one line: the step, the kind (`train` or `dev`) and the numbers."""
        if self._file is None:
            return
        line = json.dumps({"step": step, "kind": kind, **values}).encode() + b"\n"
        with wrap_os_errors(str(self._file.name), "write"):
            while line:  # a raw write may be partial
                line = line[self._file.write(line) :]
        if self._board is None:
            return
        try:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, step)
            self._board.flush()
        except OSError as error:  # curves are not worth a run; the log reports a full disk itself
            _log.warning("TensorBoard stopped: %s", error)
            self._board = None

    def size(self) -> int:
        """Return the bytes written, after making sure that they are on the disk."""
        if self._file is None:
            return 0
        with wrap_os_errors(str(self._file.name), "write"):
            os.fsync(self._file.fileno())
            return os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            with contextlib.suppress(OSError):
                self._board.close()


def _tensorboard(folder: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:  # the extra is not installed
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)
