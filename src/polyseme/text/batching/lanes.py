"""Sentences laid end to end in lanes: batches of one fixed shape for training, whatever the sentences' lengths.

A batch is `steps` places of each lane, and the next batch goes on where it ended, so that an LSTM's state is carried from
batch to batch and no place is padding. A lane that reaches the end of its sentence draws the next one from the epoch's
shuffled order. Both directions read the same sentence at the same time, one from its left and one from its right (bilm-tf let
each have sentences of its own); a sentence of n words has n + 1 places in both: forward reads `<S> w1 .. wn` and predicts
`w1 .. wn </S>`, backward reads `</S> wn .. w1` and predicts `wn .. w1 <S>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.errors import PolysemeError
from polyseme.text.batching.stream import BEGIN, END
from polyseme.text.shards.shards import Shards


@dataclass(frozen=True)
class LaneBatch:
    """Type ids that are read and predicted, each (2, steps, lanes): 0 is forward, 1 backward."""

    inputs: np.ndarray
    targets: np.ndarray
    begins: np.ndarray
    """(steps, lanes): True where a sentence begins, in both directions at once."""
    words: int
    """Words of the text, marks not counted, each once although both directions read it."""


class LaneBatches:
    """An endless stream of batches over some sentences of shards; each of `ranks` processes gets its own share."""

    def __init__(
        self, shards: Shards, sentences: range, *, lanes: int, steps: int = 20, seed: int = 0, rank: int = 0, ranks: int = 1
    ) -> None:
        if len(sentences) < ranks:
            raise PolysemeError(f"the text has {len(sentences)} sentences to train on for {ranks} processes: add text")
        self._shards, self._sentences = shards, sentences
        self._lanes, self._steps, self._seed, self._rank, self._ranks = lanes, steps, seed, rank, ranks
        self._order: tuple[int, np.ndarray] | None = None
        self._epoch, self._next = 0, 0
        self._offset = np.zeros(lanes, dtype=np.int64)  # where each lane's sentence begins in the text
        self._length = np.full(lanes, -1, dtype=np.int64)  # its words
        self._place = np.zeros(lanes, dtype=np.int64)  # how far the lane has read it; beyond its length: draw the next

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return int(self._shards.offsets[self._sentences.stop] - self._shards.offsets[self._sentences.start])

    def position(self) -> dict[str, Any]:
        """Where the next batch begins: the epoch's next sentence, and where each lane stands."""
        lanes = {name: getattr(self, f"_{name}").tolist() for name in ("offset", "length", "place")}
        return {"epoch": self._epoch, "next": self._next, "lanes": lanes}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        self._epoch, self._next = position["epoch"], position["next"]
        lanes = len(position["lanes"]["offset"])
        if lanes != self._lanes:
            raise PolysemeError(f"the run has {lanes} lanes, not {self._lanes}: give its batch words and steps")
        for name, values in position["lanes"].items():
            setattr(self, f"_{name}", np.array(values, dtype=np.int64))

    def __iter__(self) -> Iterator[LaneBatch]:
        while True:
            yield self._batch()

    def _batch(self) -> LaneBatch:
        offset, length, place = (np.empty((self._steps, self._lanes), dtype=np.int64) for _ in range(3))
        for step in range(self._steps):
            self._draw(np.flatnonzero(self._place > self._length))
            offset[step], length[step], place[step] = self._offset, self._length, self._place
            self._place += 1
        begins, ends = place == 0, place == length
        inputs, targets = (np.empty((2, self._steps, self._lanes), dtype=np.int64) for _ in range(2))
        inputs[0] = np.where(begins, BEGIN, self._words(offset + place - 1))
        inputs[1] = np.where(begins, END, self._words(offset + length - place))
        targets[0] = np.where(ends, END, self._words(offset + place))
        targets[1] = np.where(ends, BEGIN, self._words(offset + length - 1 - place))
        return LaneBatch(inputs, targets, begins, int(ends.size - np.count_nonzero(ends)))

    def _words(self, places: np.ndarray) -> np.ndarray:
        """The types at places of the text; a mark's place may lie outside it, and gives anything."""
        return self._shards.words[np.clip(places, 0, len(self._shards.words) - 1)]

    def _draw(self, lanes: np.ndarray) -> None:
        """Give lanes their next sentences."""
        while len(lanes):
            order = self._shuffled()
            drawn = order[self._next : self._next + len(lanes)].astype(np.int64) + self._sentences.start
            filled, lanes = lanes[: len(drawn)], lanes[len(drawn) :]
            begin, end = self._shards.offsets[drawn], self._shards.offsets[drawn + 1]
            self._offset[filled], self._length[filled], self._place[filled] = begin, end - begin, 0
            self._next += len(drawn)
            if self._next == len(order):
                self._epoch, self._next = self._epoch + 1, 0

    def _shuffled(self) -> np.ndarray:
        """This process's sentences of the epoch, in its order."""
        if self._order is None or self._order[0] != self._epoch:
            order = np.arange(len(self._sentences), dtype=np.uint32)
            np.random.default_rng([self._seed, self._epoch]).shuffle(order)
            self._order = (self._epoch, order[self._rank :: self._ranks])
        return self._order[1]
