"""What the rows of packed batches read, and in which order: single sentences, or also parts of documents.

Each epoch has an order of its own, which follows from the seed. All processes of a run compute it, and each takes its part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError, arg
from polyseme.text.batching.running_text import BETWEEN, running_text
from polyseme.text.batching.stream import BEGIN, END
from polyseme.text.shards.shards import Shards

Numbers = NDArray[np.int64]
MAX_PASSAGE_WORDS = 400
"""Longer documents are read in parts of about so many words."""


class Passages(ABC):
    """Slices of a text, each read by one row from a start state on."""

    special_tokens: tuple[int, ...] = ()
    """Types inside passages that are not words of the text."""

    def __init__(self, text: NDArray[np.uint32], *, seed: int = 0, rank: int = 0, world_size: int = 1) -> None:
        self.text = text
        """Type ids."""
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self._epoch: int | None = None
        self._order: NDArray[np.integer] = np.empty(0, dtype=np.int64)

    def take(self, epoch: int, begin: int, count: int) -> tuple[Numbers, Numbers]:
        """Return where the next passages of an epoch begin in the text, and their lengths; fewer at the end of the epoch."""
        if self._epoch != epoch:
            self._order = self._shuffled(np.random.default_rng([self._seed, epoch]))[self._rank :: self._world_size]
            self._epoch = epoch
        return self._slices(self._order[begin : begin + count].astype(np.int64))

    def is_at_end(self, begin: int) -> bool:
        """Whether the epoch has no passage at this position."""
        return begin >= len(self._order)

    @abstractmethod
    def _shuffled(self, random: np.random.Generator) -> NDArray[np.integer]:
        """Return the numbers of the passages of an epoch in its order, of all processes."""

    @abstractmethod
    def _slices(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Return where passages begin, and their lengths."""


class SentencePassages(Passages):
    """Every sentence by itself."""

    def __init__(self, shards: Shards, sentences: range, **process: int) -> None:
        super().__init__(shards.words, **process)
        self._offsets, self._sentences = shards.offsets, sentences

    def _shuffled(self, random: np.random.Generator) -> NDArray[np.integer]:
        order = np.arange(len(self._sentences), dtype=np.uint32)
        random.shuffle(order)
        return order

    def _slices(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        begins = self._offsets[numbers + self._sentences.start]
        return begins, self._offsets[numbers + self._sentences.start + 1] - begins


class DocumentPassages(Passages):
    """A fraction of the documents as running text, in parts of some hundred words; all other sentences by themselves.

    Each epoch chooses anew which are read in which way.
    """

    special_tokens = (BEGIN, END)

    def __init__(self, shards: Shards, sentences: range, fraction: float, **process: int) -> None:
        if shards.documents is None:
            raise PolysemeError(
                f"{shards.folder} was written by an earlier version, which did not keep where documents begin: remove it, "
                f"or train without {arg('document_fraction')}"
            )
        super().__init__(running_text(shards), **process)
        self._fraction = fraction
        chosen = np.arange(sentences.start, sentences.stop + 1)
        self._begins: Numbers = shards.offsets[chosen] + BETWEEN * chosen
        documents = np.searchsorted(shards.documents, chosen[:-1], side="right") - 1
        into = shards.offsets[chosen[:-1]] - shards.offsets[shards.documents[documents]]
        cell = np.stack([documents, into // MAX_PASSAGE_WORDS])
        is_first = np.ones(len(chosen) - 1, dtype=bool)
        is_first[1:] = (cell[:, 1:] != cell[:, :-1]).any(axis=0)
        self._is_first = is_first
        self._part = np.cumsum(is_first) - 1  # of each sentence: which part of a document it belongs to
        self._stops: Numbers = np.empty(0, dtype=np.int64)

    def _shuffled(self, random: np.random.Generator) -> NDArray[np.integer]:
        as_document = random.random(self._part[-1] + 1) < self._fraction
        starts = np.flatnonzero(self._is_first | ~as_document[self._part])
        self._stops = np.zeros(len(self._is_first), dtype=np.int64)  # by first sentence
        self._stops[starts] = np.append(starts[1:], len(self._is_first))
        random.shuffle(starts)
        return starts

    def _slices(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        begins = self._begins[numbers]
        return begins, self._begins[self._stops[numbers]] - BETWEEN - begins
