"""Give memory that is free inside the process back to the system.

Answers need arrays of many sizes for a moment. glibc keeps what they leave between smaller ones that stay, and finds less and
less of it large enough for the next: after 36 sentences of up to 300 words, a third of all private memory was free and kept.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
from collections.abc import Callable

SECONDS = 30.0
"""Between two times; each takes some milliseconds."""


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """glibc's `malloc_trim`; None: this system has another allocator."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


def free_memory() -> bool:
    """Give free memory back; return whether there was some."""
    trim = _trim()
    return trim is not None and trim(0) == 1


async def free_memory_regularly() -> None:
    """Give free memory back every `SECONDS`, beside other work, until cancelled."""
    while True:
        await asyncio.sleep(SECONDS)
        await asyncio.to_thread(free_memory)
