"""Packed batches: sentences laid end to end in rows, so that every training batch has the same shape and no padding.

A batch is the next `bptt` positions of each row. The next batch continues there, so an LSTM carries its state from batch to
batch. A row that reaches the end of its sentence takes the next one from the epoch's shuffled order. Both directions read
the same sentence at the same time, one from its left and one from its right (bilm-tf gave each its own sentences). A sentence
of n words takes n + 1 positions in both: forward reads `<S> w1 .. wn` and predicts `w1 .. wn </S>`, backward reads
`</S> wn .. w1` and predicts `wn .. w1 <S>`. Part of a document is read as one long sentence, with `</S> <S>` between its
sentences, as `embed_documents` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyseme.base import format1
from polyseme.base.errors import PolysemeError, arg
from polyseme.text.batching.passages import DocumentPassages, Passages, SentencePassages
from polyseme.text.batching.stream import BEGIN, END
from polyseme.text.shards.shards import Shards


@dataclass(frozen=True)
class PackedBatch:
    """Type ids that are read and predicted, each (2, bptt, batch_size): 0 is forward, 1 backward."""

    inputs: np.ndarray
    targets: np.ndarray
    begins: np.ndarray
    """(bptt, batch_size): True where a sentence or part of a document begins, in both directions at once."""
    words: int
    """Words of the text without special tokens; each counts once although both directions read it."""


class PackedBatches:
    """An endless stream of batches over some sentences of shards; each of `world_size` processes gets its own part."""

    def __init__(
        self,
        shards: Shards,
        sentences: range,
        *,
        batch_size: int,
        bptt: int = 20,
        document_fraction: float = 0.0,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Prepare batches of `batch_size` rows. `document_fraction`: the fraction of the text that is read as documents."""
        if len(sentences) < world_size:
            raise PolysemeError(f"{len(sentences)} training sentences are too few for {world_size} processes: add text")
        self._shards, self._sentences = shards, sentences
        self._batch_size, self._bptt = batch_size, bptt
        process = {"seed": seed, "rank": rank, "world_size": world_size}
        self._passages: Passages = (
            DocumentPassages(shards, sentences, document_fraction, **process)
            if document_fraction
            else SentencePassages(shards, sentences, **process)
        )
        self._epoch, self._next = 0, 0
        self._offset = np.zeros(batch_size, dtype=np.int64)  # where the passage of each row begins in the text
        self._length = np.full(batch_size, -1, dtype=np.int64)  # its words, and special tokens between sentences
        self._position = np.zeros(batch_size, dtype=np.int64)  # in the passage; beyond its length: take the next one

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return int(self._shards.offsets[self._sentences.stop] - self._shards.offsets[self._sentences.start])

    def position(self) -> dict[str, Any]:
        """Return where the next batch begins: the epoch's next sentence, and the state of each row."""
        rows = {name: getattr(self, f"_{name}").tolist() for name in ("offset", "length", "position")}
        return {"epoch": self._epoch, "next": self._next, "rows": rows}

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position."""
        position = format1.translate("PackedPosition", position)
        rows = format1.translate("PackedRows", position["rows"])
        self._epoch, self._next = position["epoch"], position["next"]
        count = len(rows["offset"])
        if count != self._batch_size:
            raise PolysemeError(
                f"the run has {count} rows per batch, not {self._batch_size}: use its {arg('batch_words')} and {arg('bptt')}"
            )
        for name, values in rows.items():
            setattr(self, f"_{name}", np.array(values, dtype=np.int64))

    def __iter__(self) -> Iterator[PackedBatch]:
        while True:
            yield self._batch()

    def _batch(self) -> PackedBatch:
        shape = (self._bptt, self._batch_size)
        offset, length, position = (np.empty(shape, dtype=np.int64) for _ in range(3))
        for step in range(self._bptt):
            self._take_next(np.flatnonzero(self._position > self._length))
            offset[step], length[step], position[step] = self._offset, self._length, self._position
            self._position += 1
        begins, ends = position == 0, position == length
        inputs, targets = (np.empty((2, *shape), dtype=np.int64) for _ in range(2))
        inputs[0] = np.where(begins, BEGIN, self._words(offset + position - 1))
        inputs[1] = np.where(begins, END, self._words(offset + length - position))
        targets[0] = np.where(ends, END, self._words(offset + position))
        targets[1] = np.where(ends, BEGIN, self._words(offset + length - 1 - position))
        between = np.isin(targets[0], self._passages.special_tokens)
        return PackedBatch(inputs, targets, begins, int(np.count_nonzero(~ends & ~between)))

    def _words(self, positions: np.ndarray) -> np.ndarray:
        """Return the types at positions of the text; that of a special token may lie outside it and gives any type."""
        text = self._passages.text
        return text[np.clip(positions, 0, len(text) - 1)]

    def _take_next(self, rows: np.ndarray) -> None:
        """Give rows their next passages."""
        while len(rows):
            begin, length = self._passages.take(self._epoch, self._next, len(rows))
            filled, rows = rows[: len(begin)], rows[len(begin) :]
            self._offset[filled], self._length[filled], self._position[filled] = begin, length, 0
            self._next += len(begin)
            if self._passages.is_at_end(self._next):
                self._epoch, self._next = self._epoch + 1, 0
