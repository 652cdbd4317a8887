"""Pauses of a long computation, in which its thread does something else: the service answers short requests meanwhile.

One text of 10,000 words takes `en` twenty seconds on one core. Models read long texts a piece at a time anyway, so between two
pieces they call `pause`, which does nothing unless the thread is inside `pausing`. A second thread would not do: the buffers of
an LSTM serve one call at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PIECE = 256
"""Words of a text between two pauses."""
_local = threading.local()


@contextmanager
def pausing(work: Callable[[], object] | None) -> Iterator[None]:
    """A block in which long computations of this thread do some work at each pause; None: they have no pauses."""
    before = getattr(_local, "work", None)
    _local.work = work
    try:
        yield
    finally:
        _local.work = before


def pause() -> None:
    """Let other work go first. What is computed there has no pauses of its own."""
    work = getattr(_local, "work", None)
    if work is not None:
        with pausing(None):
            work()


def piece(words: int | None, most: int = PIECE) -> int | None:
    """How many words to read at a time: as many as given (None: all), and where there are pauses at most so many.

    >>> with pausing(lambda: print("a pause")):
    ...     print(piece(4096), piece(100), piece(None))
    256 100 256
    >>> print(piece(4096), piece(None))
    4096 None
    """
    if getattr(_local, "work", None) is None:
        return words
    return most if words is None else min(words, most)
