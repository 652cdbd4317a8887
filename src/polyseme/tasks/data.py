"""ExampleBatch of a task with the frozen layers of their texts, and how they go into batches.

An example holds one text or two; all distinct texts share one cache of layers, and words that are read in a longer text have
their part of its own. Each epoch's order follows from the seed and its number, so that a position is two numbers and a resumed
run sees the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from polyseme.base.errors import PolysemeError
from polyseme.encoders.config import CachePrecision
from polyseme.encoders.layer_cache import LayerCache
from polyseme.tasks.features import Features
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.labelled.text_in_context import Sentences, TextInContext, document_of, start_in_document

WINDOW = 32  # batches' worth of examples that are sorted by length together
TOGETHER = 1 << 13  # words of documents, about, whose layers stand in memory together where they are not cached


@dataclass(frozen=True)
class ExampleBatch:
    """Some examples of a batch, and what is known of their texts."""

    examples: list[Any]
    texts: list[list[list[str]]]
    """For each text of an example (one, or two), those of all examples: words."""
    cached: list[list[Tensor]] | None
    """For each text of an example, the layers of each frozen encoder; None: not computed yet."""


class TaskData:
    """ExampleBatch, their texts, and the layers of their texts where they are cached."""

    def __init__(self, examples: Sequence[Any], texts: Sequence[Sequence[list[str]]]) -> None:
        self.examples = list(examples)
        self.texts = [list(each) for each in texts]
        self._caches: list[LayerCache] | None = None
        self._rows: dict[Sentences, int] = {}  # of distinct texts in the caches
        self.lengths = [max((len(text) for text in each), default=0) for each in self.texts]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def words(self) -> int:
        """Words of all texts."""
        return sum(len(text) for texts in self.texts for text in texts)

    def cache(
        self, features: Features, folder: Path, *, precision: CachePrecision = "fp16", among: TaskData | None = None
    ) -> None:
        """Compute the layers of all distinct texts by the frozen encoders, or find them in the folder.

        `among`: data that holds these texts. All its layers are kept together then, where other parts of it find them.
        """
        self._number(among)
        self._caches = [LayerCache.build(encoder, list(self._rows), folder, precision=precision) for encoder in features.frozen]

    def _number(self, among: TaskData | None = None) -> None:
        for texts in (among or self).texts:
            for text in texts:
                self._rows.setdefault(document_of(text), len(self._rows))

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        """Some examples."""
        count = len(self.texts[rows[0]])
        texts = [[self.texts[row][slot] for row in rows] for slot in range(count)]
        cached = None
        if self._caches is not None:
            cached = [[self._layers(cache, several) for cache in self._caches] for several in texts]
        return ExampleBatch([self.examples[row] for row in rows], texts, cached)

    def _layers(self, cache: LayerCache, texts: Sequence[Sequence[str]]) -> Tensor:
        rows = [self._rows[document_of(text)] for text in texts]
        return cache.batch(rows, [(start_in_document(text), len(text)) for text in texts])

    def by_length(self, *, words: int = 4096, rows: int = 256) -> Iterator[tuple[list[int], ExampleBatch]]:
        """All examples once, those of like length together, with their places."""
        for batch in batch_by_words(self.lengths, words=words, batch_size=rows):
            places = batch.tolist()
            yield places, self.gather(places)

    def with_layers(self, features: Features) -> Iterator[tuple[int, TaskData]]:
        """All examples in parts, with the place of each part's first, so that every document is read once.

        Only texts that are read in longer ones, and whose layers are not cached, have parts: some documents at a time, whose
        layers then stand in memory. All others are one part as they are, whose batches are read when they come.
        """
        if self._caches is not None or not any(isinstance(text, TextInContext) for texts in self.texts for text in texts):
            yield 0, self
            return
        begin, words = 0, 0
        for end in range(1, len(self) + 1):
            words += self.lengths[end - 1]
            if end == len(self) or (words >= TOGETHER and not _share_a_document(self.texts[end - 1], self.texts[end])):
                part = TaskData(self.examples[begin:end], self.texts[begin:end])
                part._number()
                part._caches = [LayerCache.in_memory(encoder, list(part._rows)) for encoder in features.frozen]
                yield begin, part
                begin, words = end, 0


def _share_a_document(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> bool:
    """Whether texts of two examples are read in the same one."""
    known = [text.document for text in first if isinstance(text, TextInContext)]
    return any(text.document is document for text in second if isinstance(text, TextInContext) for document in known)


class ExampleBatches:
    """An endless stream of batches of `size` examples; each of `world_size` processes gets its own share."""

    def __init__(self, data: TaskData, *, size: int, seed: int = 0, rank: int = 0, world_size: int = 1) -> None:
        if not len(data):
            raise PolysemeError("there are no examples to train on")
        self._data, self._size, self._seed, self._rank, self._world_size = data, size, seed, rank, world_size
        self._epoch, self._batch = 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words that all processes together see in one epoch."""
        return max(self._data.words, 1)

    @property
    def batches_per_epoch(self) -> int:
        """Steps of one epoch, for each process."""
        return -(-self._count // self._world_size)

    @property
    def _count(self) -> int:
        return -(-len(self._data) // self._size)

    def position(self) -> dict[str, Any]:
        """Where the next batch stands."""
        return {"epoch": self._epoch, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        self._epoch, self._batch = position["epoch"], position["batch"]

    def __iter__(self) -> Iterator[ExampleBatch]:
        while True:
            plan = self.plan(self._epoch)
            while self._batch < len(plan):
                self._batch += 1  # the position is that of the batch after the one given
                yield self._data.gather(plan[self._batch - 1].tolist())
            self._epoch, self._batch = self._epoch + 1, 0

    def plan(self, epoch: int) -> list[np.ndarray]:
        """This process's batches of an epoch: windows of shuffled examples sorted by length, batches shuffled again."""
        source = np.random.default_rng([self._seed, epoch])
        order = source.permutation(len(self._data))
        lengths, window = np.array(self._data.lengths), WINDOW * self._size
        windows = np.split(order, range(window, len(order), window))
        ordered = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in windows])
        batches = [ordered[begin : begin + self._size] for begin in range(0, len(ordered), self._size)]
        shuffled = [batches[place] for place in source.permutation(len(batches))]
        while len(shuffled) % self._world_size:  # every process must take the same number of steps
            shuffled.append(shuffled[len(shuffled) % len(batches)])
        return shuffled[self._rank :: self._world_size]
