"""A count of distinct things in bounded memory: exact up to a limit, by sampling beyond it.

A thing is a 64-bit hash. When there are more than the limit, only hashes that end in one more zero bit are kept: the same
things stay in the sample however often they occur, so repeats are counted right, and all counts are doubled. With the default
limit of 4 million (64 MB) an estimate is good to about 0.1 %.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return a 64-bit hash of every text; unlike Python's own it is the same in every process."""
    digest = b"".join(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts)
    return np.frombuffer(digest, dtype="<u8").astype(np.uint64)


class DistinctCount:
    """Counts distinct hashes.

    >>> seen = DistinctCount(); seen.add(hashes_of(["a", "b", "a"])); seen.distinct, seen.repeats, seen.exact
    (2, 1, True)
    """

    def __init__(self, limit: int = 1 << 22) -> None:
        self.limit = limit
        self._zeros = 0
        self._seen: Hashes = np.empty(0, dtype=np.uint64)
        self._times: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._new: list[Hashes] = []
        self._waiting = 0

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        self._new.append(self._sampled(hashes))
        self._waiting += len(self._new[-1])
        if self._waiting > self.limit // 4:  # a merge sorts all hashes, so it should be rare
            self._merge()

    @property
    def exact(self) -> bool:
        """Whether the numbers are counts and not estimates."""
        self._merge()
        return self._zeros == 0

    @property
    def distinct(self) -> int:
        """How many distinct hashes there are."""
        self._merge()
        return len(self._seen) << self._zeros

    @property
    def repeats(self) -> int:
        """How many hashes came after an equal one."""
        self._merge()
        return (int(self._times.sum()) - len(self._seen)) << self._zeros

    def _sampled(self, hashes: Hashes) -> Hashes:
        if not self._zeros:
            return hashes
        return hashes[hashes & np.uint64((1 << self._zeros) - 1) == 0]

    def _merge(self) -> None:
        if not self._new:
            return
        new, times = np.unique(np.concatenate(self._new), return_counts=True)
        self._new, self._waiting = [], 0
        self._seen, positions = np.unique(np.concatenate([self._seen, new]), return_inverse=True)
        both = np.concatenate([self._times, times])
        self._times = np.zeros(len(self._seen), dtype=np.int64)
        np.add.at(self._times, positions, both)
        while len(self._seen) > self.limit:
            self._zeros += 1
            kept = self._seen & np.uint64((1 << self._zeros) - 1) == 0
            self._seen, self._times = self._seen[kept], self._times[kept]
