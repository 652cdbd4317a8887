"""A text as it was written, end to end, cut into as many rows as a batch has: for models that read on from batch to batch.

Unlike `lanes`, which draws sentences in a shuffled order, each row is a passage of the text, sentences in their order and an
end mark after each: what stands before a sentence is what stood before it. A batch is the next few places of every row,
as many as are drawn anew each time (Merity et al. 2017: mostly `steps`, now and then half, and always a few more or less), so
that gradients end at other words in every epoch. Each epoch begins at another place of the text, which is read as a ring. All
draws follow from the seed, the epoch and the number of the batch: a position is three numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base.errors import PolysemeError
from polyseme.text.shards.shards import Shards

USUAL, DEVIATION, SHORTEST = 0.95, 5.0, 5  # how often the length is about `steps`; how far from it; at least


@dataclass(frozen=True)
class PassageBatch:
    """Places that follow each other in every row: all but the last are read, all but the first predicted."""

    types: np.ndarray
    """(rows, steps + 1): type ids; anything where `ends` is true."""
    ends: np.ndarray
    """(rows, steps + 1): True where a sentence has ended and its end mark stands."""
    fresh: bool
    """Whether the rows begin here, and nothing was read before."""

    @property
    def words(self) -> int:
        """Words of the text that are predicted, marks not counted."""
        return int(self.ends[:, 1:].size - np.count_nonzero(self.ends[:, 1:]))


class Passages:
    """The places of some sentences of shards, with an end mark after each: place -> type."""

    def __init__(self, shards: Shards, sentences: range) -> None:
        self._shards = shards
        offsets = np.asarray(shards.offsets[sentences.start : sentences.stop + 1], dtype=np.int64)
        self._offsets = offsets[np.append(True, np.diff(offsets) > 0)]  # sentences without words are left out
        self._ends = self._offsets[1:] - self._offsets[0] + np.arange(len(self._offsets) - 1)  # places of the end marks
        self.words = int(offsets[-1] - offsets[0])
        if not self.words:
            raise PolysemeError("the text has no sentences to train on: add text")

    def __len__(self) -> int:
        return int(self._ends[-1]) + 1

    def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Types at places, and where the end marks are; behind the end the text begins again."""
        places = places % len(self)
        sentence = np.searchsorted(self._ends, places)
        ends = self._ends[sentence] == places
        words = self._offsets[0] + places - sentence
        return self._shards.words[np.minimum(words, len(self._shards.words) - 1)].astype(np.int64), ends

    def in_order(self, rows: int, steps: int) -> Iterator[PassageBatch]:
        """All of it once in at most so many rows, for evaluation; the mark before the first word is read, too.

        What does not fill the last step of all rows is left out, fewer places than there are rows.
        """
        rows = max(1, min(rows, len(self) // steps))
        length = len(self) // rows
        begins = np.arange(rows)[:, None] * length - 1  # one place before, which for the first row is the last end mark
        for start in range(0, length, steps):
            stop = min(start + steps, length)
            types, ends = self.at(begins + np.arange(start, stop + 1))
            yield PassageBatch(types, ends, fresh=start == 0)


class PassageBatches:
    """Endless batches of passages; each of `ranks` processes has `rows` of its own."""

    def __init__(
        self, shards: Shards, sentences: range, *, rows: int, steps: int = 70, seed: int = 0, rank: int = 0, ranks: int = 1
    ) -> None:
        self._passages = Passages(shards, sentences)
        self._rows, self._steps, self._seed = rows, steps, seed
        self._length = len(self._passages) // (rows * ranks)  # places of a row in an epoch
        if self._length < 2:
            raise PolysemeError(
                f"the text has {len(self._passages)} words and marks to train on for {rows * ranks} rows: add text, or take "
                "fewer rows"
            )
        self._begins = np.arange(rank * rows, (rank + 1) * rows)[:, None] * self._length
        self._epoch, self._batch, self._place = 0, 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return self._passages.words

    def position(self) -> dict[str, Any]:
        """Where the next batch begins."""
        return {"epoch": self._epoch, "batch": self._batch, "place": self._place, "rows": self._rows}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        if position["rows"] != self._rows:
            raise PolysemeError(f"the run has {position['rows']} rows, not {self._rows}: give --rows {position['rows']}")
        self._epoch, self._batch, self._place = (position[name] for name in ("epoch", "batch", "place"))

    def __iter__(self) -> Iterator[PassageBatch]:
        while True:
            begin = int(np.random.default_rng([self._seed, self._epoch]).integers(len(self._passages)))
            stop = min(self._place + self._drawn(), self._length)
            types, ends = self._passages.at(begin + self._begins + np.arange(self._place, stop + 1))
            batch = PassageBatch(types, ends, fresh=self._place == 0)
            self._batch, self._place = self._batch + 1, stop
            if stop == self._length:
                self._epoch, self._batch, self._place = self._epoch + 1, 0, 0
            yield batch

    def _drawn(self) -> int:
        """Steps of the next batch."""
        draw = np.random.default_rng([self._seed, self._epoch, self._batch + 1])
        about = self._steps if draw.random() < USUAL else self._steps / 2
        return max(min(SHORTEST, self._steps), round(draw.normal(about, DEVIATION)))
