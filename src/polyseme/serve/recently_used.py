"""What was used last, up to a size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class RecentlyUsed(Generic[T]):
    """A dictionary that forgets what has not been used for longest when its values become too large.

    `size_of` tells the size of a value. One that is larger than `max_size` by itself is not kept.

    >>> kept = RecentlyUsed[str](5, len)
    >>> kept["a"], kept["b"] = "123", "12"
    >>> kept["c"] = "1"
    >>> kept.get("a"), kept.get("b")
    (None, '12')
    """

    def __init__(self, max_size: int, size_of: Callable[[T], int]) -> None:
        self._max_size, self._size_of = max_size, size_of
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self.size = 0
        """Of all values together."""

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> T | None:
        """The value, which counts as used now; None: there is none."""
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key]

    def __setitem__(self, key: Hashable, value: T) -> None:
        if key in self._kept:
            self.size -= self._size_of(self._kept.pop(key))
        self._kept[key] = value
        self.size += self._size_of(value)
        while self.size > self._max_size:
            self.size -= self._size_of(self._kept.popitem(last=False)[1])
