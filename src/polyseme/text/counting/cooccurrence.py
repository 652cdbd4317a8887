"""Co-occurrence counts: how often words occur near each other, the table that GloVe (Pennington et al. 2014) is trained on.

Two words of a sentence at distance d, up to a window, add 1/d to the count of their pair, in both orders. Words outside the
vocabulary are removed first, as in the published program, and optionally many occurrences of frequent ones, so that a window
reaches further (as in word2vec; Levy et al. 2015 call it dirty subsampling). Pairs are counted in blocks: the distance is
packed into the low part of the pair's number, so that one plain sort of 64-bit numbers groups equal pairs (a sort that carries
weights takes three times as long), and blocks are merged as they come. All of it is in memory: 12 bytes per distinct pair, and
about four times as much while counting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError, arg
from polyseme.base.progress import Advance
from polyseme.text.shards.shards import Shards

_BLOCK = 1 << 20  # words per block

Run = tuple[NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True)
class Cooccurrences:
    """Pairs of words that occur near each other, each once; (first, second) has the count of (second, first)."""

    first: NDArray[np.int32]
    """(pairs,): the word's position in the vocabulary."""
    second: NDArray[np.int32]
    """(pairs,): not before the first."""
    counts: NDArray[np.float32]
    """(pairs,): the sum of 1/distance."""
    size: int
    """Words of the vocabulary."""

    def __len__(self) -> int:
        return len(self.counts)


def frequent_types(shards: Shards, min_count: int, size: int | None = None) -> NDArray[np.int64]:
    """Return the types that occur at least `min_count` times, most frequent first: a vocabulary, (words,)."""
    if min_count < 1:
        raise UsageError(f"{arg('min_count', min_count)} is too small; allowed: 1 or more")
    counts = np.asarray(shards.counts)
    kept = np.flatnonzero(counts >= min_count)
    return kept[np.argsort(-counts[kept], kind="stable")][:size]


def subsampling_probabilities(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    """Return the probability that an occurrence of each word is kept, as in word2vec; 1 up to a frequency of `sample`.

    >>> subsampling_probabilities(np.array([900, 99, 1]), 0.01).round(3)
    array([0.117, 0.419, 1.   ])
    """
    ratios = counts / max(int(counts.sum()), 1) / sample
    return np.asarray(np.minimum((np.sqrt(ratios) + 1) / np.maximum(ratios, 1e-300), 1.0))


def count_cooccurrences(
    shards: Shards,
    types: NDArray[np.int64],
    window: int,
    progress: Advance | None = None,
    *,
    kept: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> Cooccurrences:
    """Count the pairs of a vocabulary (`frequent_types`) up to `window` words apart; `progress` counts words.

    `kept`: the probability that an occurrence of each word is kept (`subsampling_probabilities`); None: all are.
    """
    size = len(types)
    if window < 1 or size * size * window >= 1 << 63:
        raise UsageError(
            f"{arg('window', window)} is out of range; for {size:,} words allowed: 1 to {(1 << 63) // size**2 - 1:,}"
        )
    numbers = np.full(len(shards.counts), -1, dtype=np.int64)
    numbers[types] = np.arange(size)
    runs: list[Run] = []
    drawn = np.random.default_rng(seed)
    for words, sentences in _blocks(shards):
        ids = numbers[words]
        known = ids >= 0
        if kept is not None:
            known &= drawn.random(len(ids)) < kept[ids]
        runs.append(_counted(ids[known], sentences[known], size, window))
        while len(runs) > 1 and 2 * len(runs[-1][0]) >= len(runs[-2][0]):
            runs[-2:] = [_merged(runs[-2], runs[-1])]
        if progress is not None:
            progress(len(words))
    while len(runs) > 1:
        runs[-2:] = [_merged(runs[-2], runs[-1])]
    pairs, counts = runs[0] if runs else (np.zeros(0, dtype=np.int64), np.zeros(0))
    first, second = pairs // size, pairs % size
    counts = np.where(first == second, 2 * counts, counts)  # a word next to itself counts in both orders
    return Cooccurrences(first.astype(np.int32), second.astype(np.int32), counts.astype(np.float32), size)


def _blocks(shards: Shards) -> Iterator[tuple[NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield whole sentences in blocks: their words, and the number of each word's sentence."""
    begin = 0
    while begin < len(shards):
        limit = int(shards.offsets[begin]) + _BLOCK
        end = max(begin + 1, int(np.searchsorted(shards.offsets, limit, side="right")) - 1)
        offsets = np.asarray(shards.offsets[begin : end + 1])
        yield np.asarray(shards.words[offsets[0] : offsets[-1]]), np.repeat(np.arange(end - begin), np.diff(offsets))
        begin = end


def _counted(ids: NDArray[np.int64], sentences: NDArray[np.int64], size: int, window: int) -> Run:
    """Return the distinct pairs of a block in rising order, smaller word first, and their counts."""
    packed = []
    for distance in range(1, min(window, len(ids) - 1) + 1):
        together = sentences[distance:] == sentences[:-distance]
        left, right = ids[:-distance][together], ids[distance:][together]
        packed.append((np.minimum(left, right) * size + np.maximum(left, right)) * window + (distance - 1))
    every = np.sort(np.concatenate(packed)) if packed else np.zeros(0, dtype=np.int64)
    pairs, distances = np.divmod(every, window)
    return _summed(pairs, 1.0 / (distances + 1))


def _merged(one: Run, other: Run) -> Run:
    pairs = np.concatenate([one[0], other[0]])
    order = np.argsort(pairs, kind="stable")  # two sorted runs: as quick as reading them
    return _summed(pairs[order], np.concatenate([one[1], other[1]])[order])


def _summed(pairs: NDArray[np.int64], counts: NDArray[np.float64]) -> Run:
    """Return sorted pairs, each once, with the sum of its counts."""
    if not len(pairs):
        return pairs, counts
    starts = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
    return pairs[starts], np.add.reduceat(counts, starts)
