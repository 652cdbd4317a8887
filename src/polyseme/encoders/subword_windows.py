"""Overlapping windows over the subwords of texts that are longer than a network reads at once.

Nothing is truncated. A subword in two windows is taken from the one in which it has more context: farther from the edge in a
bidirectional network, with more before it in a causal one.
"""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """Subwords `begin` to `end` are read together; `first` to `last` are kept."""

    begin: int
    end: int
    first: int
    last: int


def windows(count: int, room: int, overlap: float, *, causal: bool) -> list[Window]:
    """Return windows of `room` subwords over `count` subwords, neighbours sharing `overlap` of the room; the last one is full.

    >>> windows(9, 6, 0.5, causal=False)
    [Window(begin=0, end=6, first=0, last=4), Window(begin=3, end=9, first=4, last=9)]
    >>> [window[2:] for window in windows(10, 6, 0.5, causal=True)]
    [(0, 6), (6, 9), (9, 10)]
    """
    if count <= room:
        return [Window(0, count, 0, count)]
    step = max(1, room - int(overlap * room))
    begins = [*range(0, count - room, step), count - room]
    found, first = [], 0
    for begin, following in zip(begins, [*begins[1:], None], strict=True):
        end = begin + room
        last = count if following is None else end if causal else (following + end) // 2
        found.append(Window(begin, end, first, last))
        first = last
    return found
