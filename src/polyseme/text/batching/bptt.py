"""BPTT batches: running text in its own order, for models that carry their state from batch to batch.

The text is cut into `batch_size` rows. Unlike in `packed`, which shuffles sentences, each row is a stretch of the text with an
end-of-sentence token after each sentence. A batch is the next window of every row. Its length is drawn anew each time (Merity
et al. 2017: mostly about `bptt`, now and then half of it), so that gradients stop at other words in every epoch. Each epoch
begins at another position of the text, which is read as a ring. All draws follow from the seed, the epoch and the number of
the batch, so a position is three numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base import format1
from polyseme.base.errors import PolysemeError, arg
from polyseme.text.shards.shards import Shards

FULL, STD, MIN_LENGTH = 0.95, 5.0, 5  # how often a window has about `bptt` positions; its standard deviation; its minimum


@dataclass(frozen=True)
class BpttBatch:
    """Consecutive positions of every row: all but the last are read, all but the first predicted."""

    types: np.ndarray
    """(batch_size, length + 1): type ids; undefined where `ends` is True."""
    ends: np.ndarray
    """(batch_size, length + 1): True at end-of-sentence tokens."""
    fresh: bool
    """Whether the rows begin here and no state is carried over."""

    @property
    def words(self) -> int:
        """Predicted words, without special tokens."""
        return int(self.ends[:, 1:].size - np.count_nonzero(self.ends[:, 1:]))


class TokenStream:
    """Some sentences of shards as one sequence with an end-of-sentence token after each.

    `backward`: from the last word to the first, with an end-of-sentence token before the last word of each sentence.
    """

    def __init__(self, shards: Shards, sentences: range, *, backward: bool = False) -> None:
        self._shards, self._backward = shards, backward
        offsets = np.asarray(shards.offsets[sentences.start : sentences.stop + 1], dtype=np.int64)
        self._offsets = offsets[np.append(True, np.diff(offsets) > 0)]  # without empty sentences
        self._ends = self._offsets[1:] - self._offsets[0] + np.arange(len(self._offsets) - 1)  # of sentences
        self.words = int(offsets[-1] - offsets[0])
        if not self.words:
            raise PolysemeError("the text has no sentences to train on: add text")

    def __len__(self) -> int:
        return int(self._ends[-1]) + 1

    def at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the types at positions, and where sentences end; after its end the text begins again."""
        positions = (-2 - positions if self._backward else positions) % len(self)  # the last token is read first
        sentence = np.searchsorted(self._ends, positions)
        ends = self._ends[sentence] == positions
        words = self._offsets[0] + positions - sentence
        return self._shards.words[np.minimum(words, len(self._shards.words) - 1)].astype(np.int64), ends

    def in_order(self, batch_size: int, bptt: int) -> Iterator[BpttBatch]:
        """Yield the text once in at most `batch_size` rows, for evaluation; the token before the first word is read too.

        A remainder of fewer positions than rows is dropped.
        """
        batch_size = max(1, min(batch_size, len(self) // bptt))
        length = len(self) // batch_size
        begins = np.arange(batch_size)[:, None] * length - 1  # one position earlier; for the first row the last end token
        for start in range(0, length, bptt):
            stop = min(start + bptt, length)
            types, ends = self.at(begins + np.arange(start, stop + 1))
            yield BpttBatch(types, ends, fresh=start == 0)


class BpttBatches:
    """Endless batches of BPTT windows; each of `world_size` processes has `batch_size` rows of its own."""

    def __init__(
        self,
        shards: Shards,
        sentences: range,
        *,
        batch_size: int,
        bptt: int = 70,
        backward: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._stream = TokenStream(shards, sentences, backward=backward)
        self._batch_size, self._bptt, self._seed = batch_size, bptt, seed
        self._length = len(self._stream) // (batch_size * world_size)  # positions of a row in an epoch
        if self._length < 2:
            raise PolysemeError(
                f"the training text has {len(self._stream)} tokens, too few for {batch_size * world_size} rows: add text, or "
                f"lower {arg('batch_size')}"
            )
        self._begins = np.arange(rank * batch_size, (rank + 1) * batch_size)[:, None] * self._length
        self._epoch, self._batch, self._position = 0, 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return self._stream.words

    def position(self) -> dict[str, Any]:
        """Return where the next batch begins."""
        return {"epoch": self._epoch, "batch": self._batch, "position": self._position, "batch_size": self._batch_size}

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position."""
        position = format1.translate("BpttPosition", position)
        if position["batch_size"] != self._batch_size:
            given = arg("batch_size", position["batch_size"])
            raise PolysemeError(f"the run has {position['batch_size']} rows, not {self._batch_size}: give {given}")
        self._epoch, self._batch, self._position = (position[name] for name in ("epoch", "batch", "position"))

    def __iter__(self) -> Iterator[BpttBatch]:
        while True:
            begin = int(np.random.default_rng([self._seed, self._epoch]).integers(len(self._stream)))
            stop = min(self._position + self._draw_length(), self._length)
            types, ends = self._stream.at(begin + self._begins + np.arange(self._position, stop + 1))
            batch = BpttBatch(types, ends, fresh=self._position == 0)
            self._batch, self._position = self._batch + 1, stop
            if stop == self._length:
                self._epoch, self._batch, self._position = self._epoch + 1, 0, 0
            yield batch

    def _draw_length(self) -> int:
        """Return the positions of the next batch."""
        random = np.random.default_rng([self._seed, self._epoch, self._batch + 1])
        mean = self._bptt if random.random() < FULL else self._bptt / 2
        return max(min(MIN_LENGTH, self._bptt), round(random.normal(mean, STD)))
