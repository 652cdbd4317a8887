"""Give memory that is free inside the process back to the system.

glibc keeps what arrays leave between smaller ones that stay, and finds less and less of it large enough for the next.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


@functools.cache
def trim() -> Callable[[int], int] | None:
    """glibc's `malloc_trim`; None: this system has another allocator."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return found


def free_memory() -> bool:
    """Give free memory back, in some milliseconds; return whether there was some."""
    call = trim()
    return call is not None and call(0) == 1
