"""All uses of a word in a text: where they are, their vectors in every layer, and a map of them.

`LayerStack` keeps all layers of an indexed text in memory, so that a map needs no computing by the model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import same_words
from polyseme.analysis.plane import clusters, glide, labels
from polyseme.analysis.search import SearchResult, normalised

MAX_USES = 10_000
_BLOCK = 1024  # words whose layers are mixed at a time: they fit into the cache of a core


@dataclass(frozen=True)
class Uses:
    """The uses of a word: sentences, and the position of the word in each."""

    sentences: list[list[str]]
    positions: list[int]
    total: int
    """Uses in the whole text; more than `sentences` if only some were taken."""

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class SenseMap:
    """Uses of a word as points on a plane, layer by layer, in groups."""

    uses: Uses
    points: NDArray[np.float64]
    """(layers, uses, 2), radius 1 at most; each layer is rotated to be like the one above."""
    clusters: NDArray[np.int64]
    """(uses,): the group of each, by the last layer; the largest is 0."""
    labels: list[list[str]]
    """Of each group, words that stand around its uses."""

    def to_json(self) -> dict[str, Any]:
        names = [
            {"number": number, "uses": int((self.clusters == number).sum()), "label": words}
            for number, words in enumerate(self.labels)
        ]
        pairs = zip(self.uses.sentences, self.uses.positions, strict=True)
        return {
            "total": self.uses.total,
            "uses": [{"words": words, "position": place} for words, place in pairs],
            "points": self.points.round(4).tolist(),
            "clusters": self.clusters.tolist(),
            "groups": names,
        }


def sense_map(uses: Uses, stack: NDArray[np.floating], *, groups: int | None = None, common: Collection[str] = ()) -> SenseMap:
    """Map uses by their vectors (layers, uses, dim).

    `groups`: how many, by default as many as are clear. `common` words label no group.
    """
    found = clusters(stack[-1], groups)
    return SenseMap(uses, glide(stack), found, labels(uses.sentences, uses.positions, found, common=common))


def find_uses(sentences: Sequence[Sequence[str]], word: str, limit: int = MAX_USES) -> Uses:
    """Find a word in sentences, ignoring case; of more than `limit` uses, evenly chosen ones.

    >>> find_uses([["The", "bank"], ["a", "Bank", "of", "a", "bank"]], "bank", limit=2).positions
    [1, 4]
    """
    folded = word.casefold()
    found = [(words, at) for words in sentences for at, each in enumerate(words) if each.casefold() == folded]
    chosen = [found[row] for row in evenly(len(found), limit)]
    return Uses([list(words) for words, _ in chosen], [at for _, at in chosen], len(found))


def indexed_uses(index: Index, word: str, limit: int = MAX_USES) -> tuple[Uses, NDArray[np.int64]]:
    """Find a word in an index; return its uses and their rows."""
    rows = np.flatnonzero(same_words(index.types, word)[index.words])
    chosen = rows[evenly(len(rows), limit)]
    places = [index.position(int(row)) for row in chosen]
    sentences = [index.sentence(number) for number, _ in places]
    return Uses(sentences, [at for _, at in places], len(rows)), chosen


def evenly(count: int, limit: int) -> NDArray[np.int64]:
    """Choose at most `limit` of `count` numbers, evenly.

    >>> evenly(5, 3).tolist()
    [0, 2, 4]
    """
    return np.unique(np.linspace(0, max(count - 1, 0), min(count, limit)).round().astype(np.int64))


class LayerStack:
    """All layers of all words of an index, as 16-bit floats; given up when they need more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._parts = limit, list[NDArray[np.float16]]()
        self._bytes = 0
        self._stack: NDArray[np.float16] | None = None

    def add(self, part: NDArray[np.float16]) -> None:
        """Add the layers of a sentence (layers, words, dim)."""
        self._bytes += part.nbytes
        if self._bytes <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    @property
    def stack(self) -> NDArray[np.float16] | None:
        """(layers, occurrences, dim), in the order of the index; None: it was too large."""
        if self._parts:
            self._stack = np.concatenate(self._parts, axis=1)
            self._parts.clear()
        return self._stack


def search_mix(
    stack: NDArray[np.float16], weights: Sequence[float], vector: NDArray[np.float32], count: int, among: NDArray[np.bool_]
) -> SearchResult:
    """Find the words nearest to a vector by a weighted sum of layers (layers, occurrences, dim); `among` selects candidates."""
    rows, query = np.flatnonzero(among), torch.from_numpy(normalised(vector))
    mixed_layers = [(weight, torch.from_numpy(layer)) for weight, layer in zip(weights, stack, strict=True) if weight]
    cosines, everything = np.zeros(len(rows), dtype=np.float32), len(rows) == stack.shape[1]
    for begin in range(0, len(rows), _BLOCK):
        some: Any = slice(begin, begin + _BLOCK) if everything else torch.from_numpy(rows[begin : begin + _BLOCK])
        mixed = torch.zeros(min(_BLOCK, len(rows) - begin), stack.shape[2])
        for weight, layer in mixed_layers:
            mixed.add_(layer[some].float(), alpha=weight)
        lengths = torch.linalg.vector_norm(mixed, dim=1)
        cosines[begin : begin + _BLOCK] = (mixed @ query / torch.where(lengths > 0, lengths, 1.0)).numpy()
    if len(rows) > count:
        best = cosines >= np.partition(cosines, -count)[-count]
        rows, cosines = rows[best], cosines[best]
    order = np.lexsort((rows, -cosines))[:count]
    return SearchResult(rows[order], cosines[order].clip(-1, 1))
