"""Ctrl-C held back for a moment: what it would interrupt is either a library's callback, which would lose it, or two
steps that belong together."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """A Ctrl-C during the block is raised at its end; outside the main thread, which gets them, nothing happens."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *received: seen.append(received))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if seen and callable(before):
        before(*seen[0])
