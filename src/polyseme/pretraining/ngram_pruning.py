"""Smaller n-gram models: drop the n-grams whose loss changes the model least (entropy pruning, Stolcke 1998).

    D(h w) = -P(h) { P(w | h) [log P(w | h') + log a' - log P(w | h)] + (1 - sum of P(. | h)) [log a' - log a] }

is the relative entropy between the model and the one without h w, where h' is h without its first word, a the back-off weight
of h, and a' its weight without h w. P(h) is taken from the counts of the text: the lower orders of Kneser-Ney smoothing, from
which Stolcke computes it, are no estimate of how often a context occurs (Chelba et al. 2010). An n-gram that others continue
is as important as the most important of them. Probabilities stay as they are; the back-off weights are computed anew, so that
all probabilities after a context sum to one.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from polyseme.encoders.ngram_table import Level, NgramTable
from polyseme.pretraining.ngram_counts import IntArray

_LEAST = 1e-12  # of a share that rounding could make zero
Floats = NDArray[np.float64]
Kept = list[NDArray[np.bool_]]


def prune(table: NgramTable, counts: list[IntArray], max_ngrams: int) -> NgramTable:
    """Keep all words, and at most `max_ngrams` longer n-grams; `counts`: how often each n-gram occurs, for each order.

    The table must be closed: with each n-gram it has that without its first word, as every table of counts has.
    """
    if sum(len(level) for level in table.levels[1:]) <= max_ngrams:
        return table
    suffixes = _suffixes(table)
    scores = _scores(table, suffixes, counts)
    every = np.concatenate(scores)
    threshold = np.partition(every, len(every) - max_ngrams - 1)[len(every) - max_ngrams - 1]
    kept = [np.ones(table.size, dtype=bool), *(score > threshold for score in scores)]
    backoffs = _backoffs(table, suffixes, kept)
    return _selected(table, kept, backoffs)


def _suffixes(table: NgramTable) -> list[NDArray[np.int64]]:
    """For each order from 2 on, the row of each n-gram without its first word in the order below, (n,)."""
    found = [table.levels[1].keys % table.size]
    for order, level in enumerate(table.levels[2:], start=3):
        contexts, words = np.divmod(level.keys, table.size)
        rows = table.find(order - 1, found[-1][contexts], words)
        assert (rows >= 0).all(), "an n-gram without its suffix"
        found.append(rows)
    return found


def _scores(table: NgramTable, suffixes: list[NDArray[np.int64]], counts: list[IntArray]) -> list[Floats]:
    """For each order from 2 on: D of each n-gram, or that of the best n-gram which continues it, (n,)."""
    scores = [
        _divergence(below, level, rows, how_often / counts[0].sum(), table.size)
        for (below, level), rows, how_often in zip(pairwise(table.levels), suffixes, counts, strict=False)
    ]
    for number in range(len(scores) - 1, 0, -1):
        np.maximum.at(scores[number - 1], table.levels[number + 1].keys // table.size, scores[number])
    return scores


def _divergence(below: Level, level: Level, suffixes: NDArray[np.int64], share: Floats, size: int) -> Floats:
    contexts = level.keys // size
    own = np.exp(level.log_probs.astype(np.float64))
    lower = below.log_probs[suffixes].astype(np.float64)
    left = _remaining(contexts, own, len(below))
    lower_left = _remaining(contexts, np.exp(lower), len(below))
    weight = np.log(left) - np.log(lower_left)
    left_here = left[contexts]
    without = np.log(left_here + own) - np.log(lower_left[contexts] + np.exp(lower))
    change = own * (lower + without - level.log_probs) + left_here * (without - weight[contexts])
    found: Floats = -share[contexts] * change
    return found


def _remaining(contexts: NDArray[np.int64], shares: Floats, count: int) -> Floats:
    """What is left of 1 in each context, (count,)."""
    return np.maximum(1 - np.bincount(contexts, weights=shares, minlength=count), _LEAST)


def _backoffs(table: NgramTable, suffixes: list[NDArray[np.int64]], kept: Kept) -> list[NDArray[np.float32]]:
    """The back-off weights of the model that has only some of the n-grams, for all n-grams of each order but the highest."""
    found = []
    known = table.levels[0].log_probs.astype(np.float64)  # of each n-gram by the smaller model
    for (below, level), rows, here in zip(pairwise(table.levels), suffixes, kept[1:], strict=True):
        contexts = level.keys // table.size
        lower = known[rows]
        own = level.log_probs.astype(np.float64)
        left = _remaining(contexts[here], np.exp(own[here]), len(below))
        lower_left = _remaining(contexts[here], np.exp(lower[here]), len(below))
        weights = np.log(left) - np.log(lower_left)
        found.append(weights.astype(np.float32))
        known = np.where(here, own, lower + weights[contexts])
    return found


def _selected(table: NgramTable, kept: Kept, backoffs: list[NDArray[np.float32]]) -> NgramTable:
    levels: list[Level] = []
    rows = np.zeros(1, dtype=np.int64)
    for order, (level, here) in enumerate(zip(table.levels, kept, strict=True), start=1):
        contexts, words = np.divmod(level.keys[here], table.size)
        weights = backoffs[order - 1][here] if order < table.order else np.zeros(int(here.sum()), dtype=np.float32)
        levels.append(Level(rows[contexts] * table.size + words, level.log_probs[here], weights))
        rows = np.cumsum(here) - 1
    return NgramTable(table.size, levels)
