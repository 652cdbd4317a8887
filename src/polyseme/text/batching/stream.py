"""Batches of whole sentences for training, in an order that can be resumed anywhere.

Each epoch shuffles the sentences, sorts windows of them by length (so that a batch has little padding), cuts the windows into
batches of a number of words, and shuffles the batches. All of it follows from the seed and the epoch, so a position is two
numbers, and a resumed run reads nothing twice. The sentences themselves stay on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.errors import PolysemeError
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.shards.shards import Shards

WINDOW = 64  # sentences that are sorted together, in batches
BEGIN, END = 0, 1  # type ids of <S> and </S>


@dataclass(frozen=True)
class TypeBatch:
    """Sentences as type ids with `<S>` and `</S>`, (batch, max_length + 2), and their lengths without these, (batch,)."""

    types: np.ndarray
    lengths: np.ndarray

    @property
    def words(self) -> int:
        """Words of the text, without special tokens."""
        return int(self.lengths.sum())


class SentenceBatches:
    """An endless stream of batches over some sentences of shards; each of `world_size` processes gets its own part.

    Sentences of more than `max_length` words are split into several; empty ones are dropped.
    """

    def __init__(
        self,
        shards: Shards,
        sentences: range,
        *,
        batch_words: int = 2048,
        batch_size: int = 128,
        max_length: int = 400,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._shards, self._seed, self._rank, self._world_size = shards, seed, rank, world_size
        self._batch_words, self._batch_size = batch_words, batch_size
        lengths = np.diff(shards.offsets[sentences.start : sentences.stop + 1])
        parts = -(-lengths // max_length)  # of each sentence
        numbers = np.repeat(np.arange(len(lengths)), parts)
        self._numbers = numbers + sentences.start
        self._begins = max_length * (np.arange(len(numbers)) - np.repeat(np.cumsum(parts) - parts, parts))
        self._lengths = np.minimum(lengths[numbers] - self._begins, max_length)
        if len(self._numbers) == 0:
            raise PolysemeError("the text has no sentences to train on: add text")
        self._epoch, self._batch = 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return int(self._lengths.sum())

    def position(self) -> dict[str, Any]:
        """Return the position of the next batch."""
        return {"epoch": self._epoch, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position."""
        self._epoch, self._batch = position["epoch"], position["batch"]

    def __iter__(self) -> Iterator[TypeBatch]:
        while True:
            plan = self.plan(self._epoch)
            while self._batch < len(plan):
                self._batch += 1  # the position is that of the batch after the one given
                yield self.gather(plan[self._batch - 1])
            self._epoch, self._batch = self._epoch + 1, 0

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return this process's batches of an epoch, as arrays of sentence numbers."""
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self._numbers))
        size = WINDOW * self._batch_size
        batches = []
        for begin in range(0, len(order), size):
            window = order[begin : begin + size]
            batches += [window[rows] for rows in self._by_words(self._lengths[window])]
        shuffled = [batches[i] for i in random.permutation(len(batches))]
        while len(shuffled) % self._world_size:  # every process must take the same number of steps
            shuffled.append(shuffled[len(shuffled) % len(batches)])
        return shuffled[self._rank :: self._world_size]

    def gather(self, rows: np.ndarray) -> TypeBatch:
        """Return the sentences of a batch."""
        lengths = self._lengths[rows]
        types = np.full((len(rows), int(lengths.max()) + 2), END, dtype=np.int64)
        types[:, 0] = BEGIN
        chosen = zip(self._numbers[rows].tolist(), self._begins[rows].tolist(), lengths.tolist(), strict=True)
        for row, (sentence, begin, length) in enumerate(chosen):
            types[row, 1 : length + 1] = self._shards.sentence(sentence)[begin : begin + length]
        return TypeBatch(types, lengths)

    def in_order(self) -> Iterator[TypeBatch]:
        """Yield all sentences once, by length: for evaluation."""
        for rows in self._by_words(self._lengths):
            yield self.gather(rows)

    def _by_words(self, lengths: np.ndarray) -> list[np.ndarray]:
        return batch_by_words((lengths + 2).tolist(), words=self._batch_words, batch_size=self._batch_size)
