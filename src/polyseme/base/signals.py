"""A polite stop: the first SIGINT or SIGTERM asks the loop to end after its step; the handlers before are put back after.

A second Ctrl-C stops at once, but not under torchrun, which itself passes each Ctrl-C on to every process once more.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class GracefulStop:
    """Listens for the time of a `with` block; `name` is the signal that came."""

    def __init__(self, *, patient: bool) -> None:
        self.name: str | None = None
        self._patient = patient
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python hears signals nowhere else
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._hear)
        return self

    def listen(self) -> None:
        """Listen again: a compiler inside the process (that of GPU kernels) may have taken the signals for itself."""
        for number in self._before:
            signal.signal(number, self._hear)

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.name is not None and number == signal.SIGINT and not self._patient:
            raise KeyboardInterrupt
        self.name = signal.Signals(number).name
