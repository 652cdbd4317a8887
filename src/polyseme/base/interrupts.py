"""Ctrl-C within two seconds, whatever is being computed.

Python handles a signal between two instructions of its own, and one operation on a text of a million characters can take
minutes. Loops that stop politely (`polyseme.base.signals`) wait for the end of a step, which can take as long. So the command
line watches for signals in a thread of its own (`prompt_interrupts`): if a block that only computes (`computing`) goes on for a
second after Ctrl-C, it is interrupted; if that does not help either, the process ends. Whatever was being written is then as
after a kill, from which every run and every file recovers.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import NoReturn

PATIENCE, GRACE = 0.9, 0.4  # seconds until a computation is interrupted, and after that until the process ends
Note = Callable[[], str]


class _Blocks:
    """The computing block that the main thread is in: its number, and what to say if the process ends in it."""

    entered = 0
    current: tuple[int, Note] | None = None


def _stopped() -> str:
    return "stopped"


@contextlib.contextmanager
def computing(note: Note = _stopped) -> Iterator[None]:
    """A block that computes and writes nothing, so that Ctrl-C may end it anywhere; `note` says then what is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _Blocks.entered = _Blocks.current, _Blocks.entered + 1
    if before is None:  # of nested blocks the outer one counts
        _Blocks.current = (_Blocks.entered, note)
    try:
        yield
    finally:
        _Blocks.current = before


@contextlib.contextmanager
def prompt_interrupts() -> Iterator[None]:
    """Within this block, Ctrl-C ends a `computing` block within two seconds, and the process with it if need be."""
    if os.name == "nt" or threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # the thread reads the end, and closes the other side


def _watch(reader: int) -> None:
    with os.fdopen(reader, "rb", buffering=0) as signals:
        while numbers := signals.read(64):
            block = _Blocks.current
            if signal.SIGINT not in numbers or block is None:
                continue
            time.sleep(PATIENCE)
            if _Blocks.current != block:
                continue
            _thread.interrupt_main()  # the second one is not waited for
            time.sleep(GRACE)
            if _Blocks.current == block:
                _end(block[1])


def _end(note: Note) -> NoReturn:
    """End the process; a progress bar may have hidden the cursor."""
    shown = "\x1b[?25h\n" if sys.stderr.isatty() else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{shown}polyseme: {note()}\n".encode())
    os._exit(128 + signal.SIGINT)
