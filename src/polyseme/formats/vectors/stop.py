"""Ctrl-C heard at moments of our choice.

Python raises KeyboardInterrupt wherever it happens to be. Inside h5py that is often a callback whose exceptions are
printed and dropped, and the program goes on as if nothing had been said.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self


class Stop:
    """For the time of a `with` block, the first Ctrl-C is kept until `check`; a second one stops at once."""

    def __init__(self) -> None:
        self._heard = self._waiting = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python hears signals nowhere else
            before = signal.getsignal(signal.SIGINT)
            if callable(before):  # a process that was told to ignore Ctrl-C goes on ignoring it
                self._before = before
                signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def check(self) -> None:
        """Stop here if the user has asked for it."""
        if self._heard:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a Ctrl-C stops at once: input may be long in coming."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard or self._waiting:
            self._heard = True
            raise KeyboardInterrupt
        self._heard = True
