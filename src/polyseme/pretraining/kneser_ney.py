"""From counts to probabilities: modified Kneser-Ney smoothing, interpolated (Chen and Goodman 1998), and two simpler methods.

    P(w | h) = (c(h w) - D(c)) / c(h .) + g(h) P(w | h')        h' is h without its first word

What the discounts D take off the counts, g(h) gives to the lower order, so that all probabilities after h sum to one. D has
three values per order, for the counts 1, 2, and 3 or more, estimated from how many n-grams occur once to four times. Below
the highest order, c is not how often an n-gram occurs but after how many different words: "Francisco" is frequent, but only
after "San". N-grams at the begin of a sentence have no word before them and keep their counts. The lowest order is
interpolated with the uniform distribution, so that `<unk>` has a probability too.

    kneser-ney   as above
    absolute     one discount per order, plain counts (Ney, Essen and Kneser 1994)
    none         maximum likelihood: a word that was never seen after a context has 10^-99 times its probability after the
                 next shorter one, or 10^-99 if it was never seen; an unseen context is shortened at no cost

N-grams whose count is not above the cutoff of their order are dropped, and their probability goes to the lower order too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from polyseme.encoders.config import Smoothing
from polyseme.encoders.ngram_table import ZERO, Level, NgramTable
from polyseme.pretraining.ngram_counts import BEGIN, IntArray, NgramCounts

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where a text is too small or too regular to estimate them, as in KenLM."""


@dataclass(frozen=True)
class NgramEstimate:
    """The probabilities of a model."""

    table: NgramTable
    discounts: tuple[tuple[float, ...], ...]
    """For each order: the discounts of the counts 1, 2, and 3 or more."""
    counts: list[IntArray]
    """For each order how often each n-gram of the table occurs, if that was asked for."""


def estimate(
    counted: Iterable[NgramCounts], size: int, smoothing: Smoothing, cutoffs: tuple[int, ...], *, keep_counts: bool = False
) -> NgramEstimate:
    """Estimate the probabilities of n-grams from their counts, lowest order first; `cutoffs`: one per order, not falling.

    >>> from polyseme.pretraining.ngram_counts import count_ngrams
    >>> counted = count_ngrams(np.array([0, 3, 4, 1, 0, 3, 1], dtype=np.int32), 5, 1)     # <s> a b </s> <s> a </s>
    >>> unigrams = estimate(counted, 5, "none", (0,)).table.levels[0]
    >>> np.exp(unigrams.log_probs.astype(float)).round(2).tolist()                           # <s> </s> <unk> a b
    [0.0, 0.4, 0.0, 0.4, 0.2]
    """
    levels: list[Level] = []
    discounts, kept_counts = [], []
    below = np.full(1, 1 / (size - 1))  # every word but the begin token
    kept_below, index = np.ones(1, dtype=bool), np.zeros(1, dtype=np.int64)
    for order, (grams, longer) in enumerate(pairwise(chain(counted, [None])), start=1):
        assert grams is not None
        counts = _counts(grams, longer, order, smoothing)
        discount = _discounts(counts, smoothing)
        discounts.append(discount)
        kept = grams.count > cutoffs[order - 1] if order > 1 else np.ones(len(grams), dtype=bool)
        probability, weights = _interpolate(grams, counts, np.array([0.0, *discount]), kept, below)
        if levels:
            levels[-1] = Level(levels[-1].keys, levels[-1].log_probs, _log(weights[kept_below]))
        keys = index[grams.context[kept]] * size + grams.word[kept]
        levels.append(Level(keys, _log(probability[kept]), np.zeros(len(keys), dtype=np.float32)))
        if keep_counts:
            kept_counts.append(grams.count[kept])
        below, kept_below = probability, kept
        index = np.cumsum(kept) - 1
    levels[0].log_probs[BEGIN] = ZERO  # never predicted
    return NgramEstimate(NgramTable(size, levels), tuple(discounts), kept_counts)


def _counts(grams: NgramCounts, longer: NgramCounts | None, order: int, smoothing: Smoothing) -> IntArray:
    """Return what is discounted: counts, or after how many different words an n-gram occurs."""
    counts: IntArray = grams.count
    if smoothing == "kneser-ney" and longer is not None:
        counts = np.where(grams.begins, counts, np.bincount(longer.shorter, minlength=len(grams)))
    if order == 1:
        counts = counts.copy()
        counts[BEGIN] = 0
    return counts


def _discounts(counts: IntArray, smoothing: Smoothing) -> tuple[float, ...]:
    """Return the discounts of the counts 1, 2, and 3 or more."""
    if smoothing == "none":
        return 0.0, 0.0, 0.0
    one, two, three, four = np.bincount(counts[(counts > 0) & (counts < 5)], minlength=5)[1:].tolist()
    ratio = one / (one + 2 * two) if one else 0.0
    if smoothing == "absolute":
        return (ratio,) * 3 if 0 < ratio < 1 else (FALLBACK[0],) * 3
    if not (one and two and three):
        return FALLBACK
    discounts = tuple(
        n + 1 - (n + 2) * ratio * more / fewer for n, (fewer, more) in enumerate(((one, two), (two, three), (three, four)))
    )
    return discounts if all(0 <= value <= n + 1 for n, value in enumerate(discounts)) else FALLBACK


def _interpolate(
    grams: NgramCounts,
    counts: NDArray[np.int64],
    discounts: NDArray[np.float64],
    kept: NDArray[np.bool_],
    below: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probability of each n-gram, (n,), and for each context the weight of the order below, (contexts,)."""
    own = np.where(kept, counts - discounts[np.minimum(counts, 3)], 0.0)
    contexts = len(below)
    total = np.bincount(grams.context, weights=counts, minlength=contexts)
    discounted = np.bincount(grams.context, weights=own, minlength=contexts)
    weights = np.ones(contexts)  # for contexts that nothing follows, such as the end of a sentence
    np.divide(total - discounted, total, out=weights, where=total > 0)
    return own / total[grams.context] + weights[grams.context] * below[grams.shorter], weights


def _log(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(values), ZERO).astype(np.float32)
