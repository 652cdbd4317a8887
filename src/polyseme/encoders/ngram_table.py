"""The n-grams of a model as sorted arrays: a trie in which a look-up is a binary search, for many positions at once.

The n-grams of an order are sorted by their words. Each has one number, its key: the row of its first n - 1 words among the
n-grams one order lower, times the size of the vocabulary, plus its last word. Chosen against a hash of Python objects (a
hundred bytes per n-gram and one look-up at a time): this takes 16 bytes, can be memory-mapped, and 20 million 5-grams are
looked up by a handful of NumPy calls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ZERO = -99 * float(np.log(10))
"""The natural log of a probability of zero, as in ARPA files (log10 of -99)."""


@dataclass(frozen=True)
class Level:
    """All n-grams of one order, sorted by their words."""

    keys: NDArray[np.int64]
    """(n,), ascending: row of the first words in the level below * size of the vocabulary + last word."""
    log_probs: NDArray[np.float32]
    """(n,): natural logs of P(last word | the words before)."""
    backoffs: NDArray[np.float32]
    """(n,): natural logs of the weight of the lower order where this n-gram is the context; 0 where it is none."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True)
class NgramMatches:
    """The n-grams that match at every position of a text, (positions,) each; meaningless where a sentence begins."""

    order: NDArray[np.int64]
    """Of the longest n-gram of the table that ends here."""
    found: NDArray[np.float64]
    """Its natural-log probability."""
    weights: NDArray[np.float64]
    """(orders - 1, positions): the log of the back-off weight of the context of 1, 2, ... words; NaN where it was not needed
    because a longer n-gram was found, or where the table lacks the context, which then costs nothing."""

    @property
    def log_probs(self) -> NDArray[np.float64]:
        """Natural logs of P(word | the words before), (positions,)."""
        return self.found + np.nansum(self.weights, axis=0)


class NgramTable:
    """N-grams of every order up to a highest one; words are ids below `size`.

    >>> ones = Level(np.arange(3), np.log([0.2, 0.3, 0.5], dtype=np.float32), np.log([1, 0.4, 1], dtype=np.float32))
    >>> pairs = Level(np.array([1 * 3 + 2]), np.log([0.6], dtype=np.float32), np.zeros(1, dtype=np.float32))
    >>> found = NgramTable(3, [ones, pairs]).read(np.array([1, 2, 1, 1]), np.array([0, 2]))
    >>> found.order.tolist(), np.exp(found.log_probs).round(2).tolist()     # "1 2" is known; "1 1" is 0.4 * 0.3
    ([1, 2, 1, 1], [0.3, 0.6, 0.3, 0.12])
    """

    def __init__(self, size: int, levels: list[Level]) -> None:
        self.size, self.levels = size, levels

    @property
    def order(self) -> int:
        return len(self.levels)

    def find(self, order: int, contexts: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of n-grams of an order, from those of their first words in the level below, (n,); -1: none."""
        keys = self.levels[order - 1].keys
        wanted = contexts * self.size + words
        if not len(keys):
            return np.full(len(wanted), -1)
        rows = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((keys[rows] == wanted) & (contexts >= 0), rows, -1)

    def read(self, words: NDArray[np.int64], begins: NDArray[np.int64]) -> NgramMatches:
        """Look up every word of concatenated sentences, (positions,); `begins`: where each begins."""
        ends = self._ending(words, begins)
        total = len(words)
        order = np.ones(total, dtype=np.int64)
        found = self.levels[0].log_probs[words].astype(np.float64)
        for number, rows in enumerate(ends[1:], start=2):
            there = rows >= 0
            order[there] = number
            found[there] = self.levels[number - 1].log_probs[rows[there]]
        weights = np.full((self.order - 1, total), np.nan)
        for number, rows in enumerate(ends[:-1], start=1):  # the context of so many words ends one position before
            asked = np.flatnonzero((order[1:] <= number) & (rows[:-1] >= 0))
            weights[number - 1, asked + 1] = self.levels[number - 1].backoffs[rows[asked]]
        weights[:, begins] = np.nan
        return NgramMatches(order, found, weights)

    def _ending(self, words: NDArray[np.int64], begins: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return, for every order, the row of the n-gram that ends at each word, or -1."""
        total = len(words)
        since = np.arange(total) - np.repeat(begins, np.diff(np.append(begins, total)))  # words before this one
        ends = [words]
        for number in range(2, self.order + 1):
            before = np.full(total, -1)
            before[1:] = ends[-1][:-1]
            before[since < number - 1] = -1
            ends.append(self.find(number, before, words))
        return ends

    def distribution(self, context: NDArray[np.int64]) -> NDArray[np.float64]:
        """Natural-log probabilities of all words after a context, (size,)."""
        result = self.levels[0].log_probs.astype(np.float64)
        for length in range(1, min(len(context), self.order - 1) + 1):
            row = self.row(context[len(context) - length :])
            if row < 0:
                continue  # a longer context may still exist in a pruned table
            result += self.levels[length - 1].backoffs[row]
            level = self.levels[length]
            first, last = np.searchsorted(level.keys, [row * self.size, (row + 1) * self.size])
            result[level.keys[first:last] % self.size] = level.log_probs[first:last]
        return result

    def row(self, words: NDArray[np.int64]) -> int:
        """Return the row of an n-gram in its level; -1: the table lacks it."""
        row = words[:1]
        for order in range(2, len(words) + 1):
            row = self.find(order, row, words[order - 1 : order])
        return int(row[0])

    def words(self, order: int) -> NDArray[np.int64]:
        """All n-grams of an order as ids, (n, order)."""
        columns: list[NDArray[np.int64]] = []
        rows = np.arange(len(self.levels[order - 1]))
        for level in reversed(self.levels[:order]):
            rows, last = np.divmod(level.keys[rows], self.size)
            columns.append(last)
        return np.stack(columns[::-1], axis=1)

    def difference(self, other: NgramTable) -> float:
        """The largest difference from the numbers of a table with the same n-grams; infinite where it has others."""
        largest = 0.0
        for one, two in zip(self.levels, other.levels, strict=True):
            if not np.array_equal(one.keys, two.keys):
                return float("inf")
            for here, there in ((one.log_probs, two.log_probs), (one.backoffs, two.backoffs)):
                largest = max(largest, float(np.abs(here - there).max(initial=0.0)))
        return largest

    def problems(self) -> list[str]:
        """What is wrong with a table that was read from a file."""
        problems, below = [], 1
        for order, level in enumerate(self.levels, start=1):
            if not len(level.keys) == len(level.log_probs) == len(level.backoffs):
                problems.append(f"its {order}-grams, their probabilities and their back-off weights differ in number")
            elif len(level) and (
                level.keys[0] < 0 or level.keys[-1] >= below * self.size or not (np.diff(level.keys) > 0).all()
            ):
                problems.append(f"its {order}-grams are not sorted, or do not fit the order below")
            elif not np.isfinite(level.log_probs).all() or not np.isfinite(level.backoffs).all():
                problems.append(f"its {order}-grams have numbers that are not finite")
            elif order == 1 and len(level) != self.size:
                problems.append(f"it has {len(level):,} 1-grams for a vocabulary of {self.size:,} words")
            below = len(level)
        return problems
