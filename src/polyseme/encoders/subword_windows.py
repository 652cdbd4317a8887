"""Texts that are longer than a network reads at once: windows over their pieces, which overlap.

Nothing is cut off. Where two windows hold the same piece, it is taken from the one in which it has more context: in a network
that reads both ways its nearer edge is farther away, in one that reads from the left more stands before it.
"""

from __future__ import annotations

from typing import NamedTuple


class Window(NamedTuple):
    """Pieces `begin` to `end` are read together; of these, `first` to `last` are taken."""

    begin: int
    end: int
    first: int
    last: int


def windows(count: int, room: int, overlap: float, *, causal: bool) -> list[Window]:
    """The windows of `room` pieces over `count` pieces, two neighbours sharing `overlap` of the room; the last one is full.

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
