"""Endless batches over documents of subwords, block by block: what the pairs of BERT and the rows of GPT share.

All random choices follow from the seed, the epoch and the position, so that a run can be resumed anywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.text.shards.subwords import SubwordShards

BLOCK = 2048  # documents whose batches are planned together
IGNORED = -100  # the target of subwords that are not predicted, as in PyTorch's cross-entropy


class DocumentBatches(ABC):
    """Batches of some documents; each process of the run gets its part of them."""

    def __init__(self, shards: SubwordShards, documents: range, run: Run | None) -> None:
        run = run or Run()
        self._shards, self._documents = shards, documents
        self._seed, self._rank, self._world_size = run.seed, run.rank, run.world_size
        self._epoch = self._block = self._batch = 0

    @property
    @abstractmethod
    def words_per_epoch(self) -> int:
        """Words of one pass."""

    @abstractmethod
    def shuffled(self, epoch: int, block: int) -> Sequence[Any]:
        """Return the plans of the batches of a block of documents, in the order of an epoch."""

    @abstractmethod
    def gather(self, plan: Any) -> Any:
        """Make the batch of a plan."""

    @abstractmethod
    def once(self) -> list[Any]:
        """Return the batches of all documents, always the same: for evaluation."""

    def position(self) -> dict[str, Any]:
        """Return the position of the next batch."""
        return {"epoch": self._epoch, "block": self._block, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position."""
        self._epoch, self._block, self._batch = (position[name] for name in ("epoch", "block", "batch"))

    def __iter__(self) -> Iterator[Any]:
        given = True
        while given:
            given = self._block > 0 or self._batch > 0
            while self._block * BLOCK < len(self._documents):
                plans = self.shuffled(self._epoch, self._block)
                steps = -(-len(plans) // self._world_size)  # as many for each process: the last ones get a batch again
                while self._batch < steps:
                    given = True
                    self._batch += 1  # the position is that of the batch after the one given
                    number = (self._batch - 1) * self._world_size + self._rank
                    yield self.gather(plans[number % len(plans)])
                self._block, self._batch = self._block + 1, 0
            self._epoch, self._block = self._epoch + 1, 0
        raise PolysemeError("no document of the text has two words, so there is nothing to predict: add text")
