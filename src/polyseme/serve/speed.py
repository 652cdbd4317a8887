"""How long waiting words will take, by what batches of their size took before.

A batch of two thousand words takes far less than a hundred batches of twenty, so speeds are kept by size, in powers of two.
What waits is computed in batches as large as possible, so their speed is known once there was one such batch.
"""

from __future__ import annotations

from collections.abc import Hashable

_WEIGHT = 0.5  # of the newest batch: the machine may have become slower since


class SpeedMeter:
    """Words per second of each kind of operation; `batch_words`: of the largest batch.

    >>> meter = SpeedMeter(batch_words=100)
    >>> meter.observe("embed", words=100, seconds=0.5)
    >>> meter.seconds("embed", 400), meter.seconds("score", 400)
    (2.0, 0.0)
    """

    def __init__(self, batch_words: int) -> None:
        self._batch_words = batch_words
        self._speeds: dict[tuple[Hashable, int], float] = {}

    def observe(self, kind: Hashable, words: int, seconds: float) -> None:
        """A batch took so long."""
        key, speed = (kind, words.bit_length()), words / max(seconds, 1e-6)
        before = self._speeds.get(key, speed)
        self._speeds[key] = before + _WEIGHT * (speed - before)

    def seconds(self, kind: Hashable, words: int) -> float:
        """How long words of a kind will take together; 0 while no such batch was seen."""
        size = min(words, self._batch_words).bit_length()
        larger = [(kind, each) for each in range(size, self._batch_words.bit_length() + 1) if (kind, each) in self._speeds]
        return words / self._speeds[larger[0]] if larger else 0.0
