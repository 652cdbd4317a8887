"""What was used last, up to a size in bytes: texts, too, because a client may send a word of a million letters."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class RecentlyUsed(Generic[T]):
    """A dictionary that forgets what has not been used for longest when its values become too large.

    The size is given with a value, and covers its key. A value that is larger than `max_size` by itself is not kept.

    >>> kept = RecentlyUsed[str](5)
    >>> kept.keep("a", "123", size=3)
    >>> kept.keep("b", "12", size=2)
    >>> kept.keep("c", "1", size=1)
    >>> kept.get("a"), kept.get("b")
    (None, '12')
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._kept: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.size = 0
        """Of all values together."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> T | None:
        """The value, which counts as used now; None: there is none."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def keep(self, key: Hashable, value: T, size: int) -> None:
        """Keep a value in place of the one that the key had, and forget others until it fits."""
        if key in self._kept:
            self.size -= self._kept.pop(key)[1]
        if size > self._max_size:
            return
        self._kept[key] = value, size
        self.size += size
        while self.size > self._max_size:
            self.size -= self._kept.popitem(last=False)[1][1]


def text_bytes(words: Iterable[str]) -> int:
    """Bytes of words in memory, and of the list that they are in."""
    return sum(sys.getsizeof(word) + 8 for word in words)
