"""Stop politely: Ctrl-C and SIGTERM are noted, and the program stops where it can.

Without this, Python raises KeyboardInterrupt wherever it happens to be, for example between two files of a checkpoint, or in a
callback of h5py that drops exceptions.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Self


class GracefulStop:
    """Note signals during a `with` block; the handlers from before come back at its end.

    A second Ctrl-C stops at once, unless `repeat_stops_now` is false: torchrun sends each Ctrl-C to its processes twice.
    Signals that the process ignores stay ignored.
    """

    def __init__(
        self, signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM), *, repeat_stops_now: bool = True
    ) -> None:
        self.name: str | None = None
        """The signal that came."""
        self._signals, self._repeat_stops_now = signals, repeat_stops_now
        self._interruptible = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python handles signals nowhere else
            for number in self._signals:
                if (before := signal.getsignal(number)) not in (signal.SIG_IGN, None):
                    self._before[number] = before
            self.listen()
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def listen(self) -> None:
        """Install the handlers again: a compiler inside the process (of GPU kernels) may have replaced them."""
        for number in self._before:
            signal.signal(number, self._handle)

    def check(self) -> None:
        """Stop here if a signal came."""
        if self.name is not None:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """In this `with` block a signal stops at once, for example while the program waits for input."""
        before, self._interruptible = self._interruptible, True
        try:
            self.check()
            yield
        finally:
            self._interruptible = before

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.name is not None and number == signal.SIGINT and self._repeat_stops_now
        self.name = signal.Signals(number).name
        if again or self._interruptible:
            raise KeyboardInterrupt
