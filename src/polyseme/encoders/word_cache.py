"""A cache of word vectors, so that the character network reads each word once.

It grows across calls up to a limit; then the least recently used words are replaced. Words are the keys, so there is no
reserved row, and the weight version empties the cache as soon as the weights change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.nn.to_device import to_device
from polyseme.nn.weight_version import WeightVersion


class WordCache:
    """`lookup(words, stamp, compute)` gives (words, dim); `compute` is called with the words that are missing."""

    def __init__(self, limit: int = 65536) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self.clear()

    def __getstate__(self) -> dict[str, Any]:
        """A copy starts empty: it is cheap to fill, and a lock cannot be copied."""
        return {"limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["limit"])  # type: ignore[misc]

    def clear(self) -> None:
        """Forget all words."""
        self._rows: dict[str, int] = {}
        self._words: list[str] = []
        self._used = np.zeros(0, dtype=np.int64)
        self._table: Tensor | None = None
        self._stamp: WeightVersion | None = None
        self._clock = 0

    def __len__(self) -> int:
        return len(self._rows)

    def lookup(self, words: list[str], stamp: WeightVersion, compute: Callable[[list[str]], Tensor]) -> Tensor:
        """Vectors of these words, each distinct word computed at most once; one caller at a time."""
        with self._lock:
            return self._lookup(words, stamp, compute)

    def _lookup(self, words: list[str], stamp: WeightVersion, compute: Callable[[list[str]], Tensor]) -> Tensor:
        if stamp != self._stamp:
            self.clear()
            self._stamp = stamp
        self._clock += 1
        known = self._rows
        rows = list(map(known.get, words))
        if None in rows:
            missing = list(dict.fromkeys(word for word, row in zip(words, rows, strict=True) if row is None))
            if len(missing) + len(words) > self.limit:
                return compute(words)  # more than the table may hold: nothing to gain by remembering
            self._used[[row for row in rows if row is not None]] = self._clock
            self._insert(missing, compute(missing))
            rows = list(map(known.get, words))
        found = np.array(rows, dtype=np.int64)
        self._used[found] = self._clock
        assert self._table is not None
        return self._table.index_select(0, to_device(torch.from_numpy(found), self._table.device))

    def _insert(self, words: list[str], vectors: Tensor) -> None:
        room = min(self.limit - len(self._words), len(words))
        rows = list(range(len(self._words), len(self._words) + room))
        self._words += words[:room]
        self._grow(vectors)
        if room < len(words):
            spare = len(words) - room
            oldest = np.argpartition(self._used[: self.limit - room], spare - 1)[:spare]
            for row, word in zip(oldest.tolist(), words[room:], strict=True):
                del self._rows[self._words[row]]
                self._words[row] = word
                rows.append(row)
        self._rows.update(zip(words, rows, strict=True))
        assert self._table is not None
        self._table[torch.tensor(rows, device=self._table.device)] = vectors

    def _grow(self, vectors: Tensor) -> None:
        """Make room in the table for all of `_words`, doubling, so that filling it costs linear time."""
        have = 0 if self._table is None else len(self._table)
        if len(self._words) <= have:
            return
        size = min(self.limit, max(len(self._words), 2 * have))
        with torch.inference_mode(False):  # a table made in inference mode could not be written outside of it
            table = vectors.new_empty(size, vectors.shape[1])
        if self._table is not None:
            table[:have] = self._table
        self._table = table
        self._used = np.concatenate([self._used, np.zeros(size - have, dtype=np.int64)])
