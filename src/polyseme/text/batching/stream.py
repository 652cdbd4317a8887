"""Batches of whole sentences for training, in an order that can be taken up anywhere.

Each epoch shuffles the sentences anew, sorts windows of them by length (so that a batch pads little), cuts the windows into
batches by word budget and shuffles the batches. All of it follows from the seed and the number of the epoch, so a position is
two numbers, and going on after a stop reads nothing twice. The sentences themselves stay on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.errors import PolysemeError
from polyseme.text.batching.batches import by_words
from polyseme.text.shards.shards import Shards

WINDOW = 64  # batches' worth of sentences that are sorted together
BEGIN, END = 0, 1  # type ids of the marks


@dataclass(frozen=True)
class TypeBatch:
    """Sentences as type ids with their marks: (batch, longest + 2), and lengths without marks (batch,)."""

    types: np.ndarray
    lengths: np.ndarray

    @property
    def words(self) -> int:
        """Words of the text, marks not counted."""
        return int(self.lengths.sum())


class SentenceBatches:
    """An endless stream of batches over some sentences of shards; each of `ranks` processes gets its own share.

    Longer sentences than `longest` words are read in pieces, each as a sentence of its own; empty ones are left out.
    """

    def __init__(
        self,
        shards: Shards,
        sentences: range,
        *,
        words: int = 2048,
        rows: int = 128,
        longest: int = 400,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self._shards, self._seed, self._rank, self._ranks = shards, seed, rank, ranks
        self._words, self._rows, self._longest = words, rows, longest
        whole = np.diff(shards.offsets[sentences.start : sentences.stop + 1])
        pieces = -(-whole // longest)  # of each sentence
        numbers = np.repeat(np.arange(len(whole)), pieces)
        self._kept = numbers + sentences.start
        self._begins = longest * (np.arange(len(numbers)) - np.repeat(np.cumsum(pieces) - pieces, pieces))
        self._lengths = np.minimum(whole[numbers] - self._begins, longest)
        if len(self._kept) == 0:
            raise PolysemeError("the text has no sentences to train on: add text")
        self._epoch, self._batch = 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return int(self._lengths.sum())

    def position(self) -> dict[str, Any]:
        """Where the next batch stands."""
        return {"epoch": self._epoch, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        self._epoch, self._batch = position["epoch"], position["batch"]

    def __iter__(self) -> Iterator[TypeBatch]:
        while True:
            plan = self.plan(self._epoch)
            while self._batch < len(plan):
                self._batch += 1  # the position is that of the batch after the one given
                yield self.gather(plan[self._batch - 1])
            self._epoch, self._batch = self._epoch + 1, 0

    def plan(self, epoch: int) -> list[np.ndarray]:
        """This process's batches of an epoch, as rows of kept sentences."""
        source = np.random.default_rng([self._seed, epoch])
        order = source.permutation(len(self._kept))
        size = WINDOW * self._rows
        found = []
        for begin in range(0, len(order), size):
            window = order[begin : begin + size]
            found += [
                window[rows] for rows in by_words((self._lengths[window] + 2).tolist(), words=self._words, rows=self._rows)
            ]
        shuffled = [found[place] for place in source.permutation(len(found))]
        while len(shuffled) % self._ranks:  # every process must take the same number of steps
            shuffled.append(shuffled[len(shuffled) % len(found)])
        return shuffled[self._rank :: self._ranks]

    def gather(self, rows: np.ndarray) -> TypeBatch:
        """The sentences of a batch."""
        lengths = self._lengths[rows]
        types = np.full((len(rows), int(lengths.max()) + 2), END, dtype=np.int64)
        types[:, 0] = BEGIN
        chosen = zip(self._kept[rows].tolist(), self._begins[rows].tolist(), lengths.tolist(), strict=True)
        for place, (sentence, begin, length) in enumerate(chosen):
            types[place, 1 : length + 1] = self._shards.sentence(sentence)[begin : begin + length]
        return TypeBatch(types, lengths)

    def in_order(self) -> Iterator[TypeBatch]:
        """All sentences once, by length: for evaluation."""
        for rows in by_words((self._lengths + 2).tolist(), words=self._words, rows=self._rows):
            yield self.gather(rows)
