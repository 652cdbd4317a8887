"""Examples of a task with the frozen layers of their texts, and their batches.

All distinct texts share one cache of layers; a text in context has its part of its document's layers. The order of an epoch
follows from the seed and the epoch, so a position is two numbers, and a resumed run sees the same batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
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

WINDOW = 32  # batches of examples that are sorted by length together
DOCUMENT_WORDS = 1 << 13  # words of documents, about, whose layers are in memory together where they are not cached


@dataclass(frozen=True)
class ExampleBatch:
    """The examples of a batch, and their texts."""

    examples: list[Any]
    texts: list[list[list[str]]]
    """For each text of an example (one or two), the words of that text in all examples."""
    cached: list[list[Tensor]] | None
    """For each text of an example, the layers of each frozen encoder; None: not computed."""


class TaskData:
    """Examples, their texts, and the cached layers of their texts."""

    def __init__(self, examples: Sequence[Any], texts: Sequence[Sequence[list[str]]]) -> None:
        self.examples = list(examples)
        self.texts = [list(each) for each in texts]
        self._caches: list[LayerCache] | None = None
        self._rows: dict[Sentences, int] = {}  # of distinct documents in the caches
        self.lengths = [max((len(text) for text in each), default=0) for each in self.texts]

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def words(self) -> int:
        """Words of all texts."""
        return sum(len(text) for texts in self.texts for text in texts)

    def cache(
        self, features: Features, folder: Path, *, precision: CachePrecision = "fp16", superset: TaskData | None = None
    ) -> None:
        """Compute the layers of all distinct texts by the frozen encoders, or read them from the folder.

        `superset`: data that contains these texts; all its layers are cached, where other parts of it find them.
        """
        self._number(superset)
        self._caches = [LayerCache.build(encoder, list(self._rows), folder, precision=precision) for encoder in features.frozen]

    def _number(self, superset: TaskData | None = None) -> None:
        for texts in chain([] if superset is None else superset.texts, self.texts):
            for text in texts:
                self._rows.setdefault(document_of(text), len(self._rows))

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        """Return a batch of some examples."""
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
        """Yield batches of examples of similar length, each example once, with their numbers."""
        for batch in batch_by_words(self.lengths, words=words, batch_size=rows):
            numbers = batch.tolist()
            yield numbers, self.gather(numbers)

    def with_layers(self, features: Features) -> Iterator[tuple[int, TaskData]]:
        """Yield the examples in parts, with the number of each part's first example, so that encoders read every document once.

        Texts in context without cached layers come in parts of some documents, whose layers are then in memory. All other
        data is one part, and its batches are encoded one by one.
        """
        if self._caches is not None or not any(isinstance(text, TextInContext) for texts in self.texts for text in texts):
            yield 0, self
            return
        begin, words = 0, 0
        for end in range(1, len(self) + 1):
            words += self.lengths[end - 1]
            if end == len(self) or (words >= DOCUMENT_WORDS and not _share_a_document(self.texts[end - 1], self.texts[end])):
                part = TaskData(self.examples[begin:end], self.texts[begin:end])
                part._number()
                part._caches = [LayerCache.in_memory(encoder, list(part._rows)) for encoder in features.frozen]
                yield begin, part
                begin, words = end, 0


def _share_a_document(first: Sequence[Sequence[str]], second: Sequence[Sequence[str]]) -> bool:
    """Return whether texts of two examples are in the same document."""
    known = [text.document for text in first if isinstance(text, TextInContext)]
    return any(text.document is document for text in second if isinstance(text, TextInContext) for document in known)


class ExampleBatches:
    """Endless batches of `size` examples; each of `world_size` processes gets its own."""

    def __init__(self, data: TaskData, *, size: int, seed: int = 0, rank: int = 0, world_size: int = 1) -> None:
        if not len(data):
            raise PolysemeError("there are no examples to train on")
        self._data, self._size, self._seed, self._rank, self._world_size = data, size, seed, rank, world_size
        self._epoch, self._batch = 0, 0

    @property
    def words_per_epoch(self) -> int:
        """Words of one epoch, over all processes."""
        return max(self._data.words, 1)

    @property
    def batches_per_epoch(self) -> int:
        """Steps of one epoch."""
        return -(-self._count // self._world_size)

    @property
    def _count(self) -> int:
        return -(-len(self._data) // self._size)

    def position(self) -> dict[str, Any]:
        """Return where the next batch begins."""
        return {"epoch": self._epoch, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position."""
        self._epoch, self._batch = position["epoch"], position["batch"]

    def __iter__(self) -> Iterator[ExampleBatch]:
        while True:
            plan = self.plan(self._epoch)
            while self._batch < len(plan):
                self._batch += 1  # the position is that of the batch after the one given
                yield self._data.gather(plan[self._batch - 1].tolist())
            self._epoch, self._batch = self._epoch + 1, 0

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch for this process: shuffled examples, sorted by length in windows; shuffled batches."""
        source = np.random.default_rng([self._seed, epoch])
        order = source.permutation(len(self._data))
        lengths, window = np.array(self._data.lengths), WINDOW * self._size
        windows = np.split(order, range(window, len(order), window))
        ordered = np.concatenate([part[np.argsort(lengths[part], kind="stable")] for part in windows])
        batches = [ordered[begin : begin + self._size] for begin in range(0, len(ordered), self._size)]
        shuffled = [batches[number] for number in source.permutation(len(batches))]
        while len(shuffled) % self._world_size:  # every process must take the same number of steps
            shuffled.append(shuffled[len(shuffled) % len(batches)])
        return shuffled[self._rank :: self._world_size]
