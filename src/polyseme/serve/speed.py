"""How long waiting words will take, by what batches of their size took before.

A batch of two thousand words takes far less than a hundred batches of twenty, so speeds are kept by size, in powers of two.
What waits is computed in batches as large as possible, so their speed is known once there was one such batch. Before, it is
guessed from smaller ones.
"""

from __future__ import annotations

from collections.abc import Hashable

_WEIGHT = 0.5  # of the newest batch: the machine may have become slower since
_GAIN = 1.3  # how much faster words of a batch of twice the size are taken to be, until there was one


class SpeedMeter:
    """Seconds per word of each kind of operation; `batch_words`: of the largest batch.

    >>> meter = SpeedMeter(batch_words=100)
    >>> meter.observe("embed", words=100, seconds=0.5)
    >>> meter.seconds("embed", 400), meter.seconds("score", 400)
    (2.0, 0.0)
    """

    def __init__(self, batch_words: int) -> None:
        self._batch_words = batch_words
        self._word_seconds: dict[tuple[Hashable, int], float] = {}

    def observe(self, kind: Hashable, words: int, seconds: float) -> None:
        """A batch took so long."""
        key, each = (kind, words.bit_length()), seconds / max(words, 1)
        before = self._word_seconds.get(key, each)
        self._word_seconds[key] = before + _WEIGHT * (each - before)

    def seconds(self, kind: Hashable, words: int) -> float:
        """How long words of a kind will take together; 0 while there was no batch of the kind."""
        size = min(words, self._batch_words).bit_length()
        for larger in range(size, self._batch_words.bit_length() + 1):
            if (kind, larger) in self._word_seconds:
                return words * self._word_seconds[kind, larger]
        for smaller in range(size - 1, -1, -1):
            if (kind, smaller) in self._word_seconds:
                return words * self._word_seconds[kind, smaller] / _GAIN ** (size - smaller)
        return 0.0
