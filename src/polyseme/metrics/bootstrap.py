"""Is the new system better? The paired bootstrap over examples (Efron & Tibshirani 1993; Koehn 2004) and over seeds.

Each resample draws as many examples as there are, with replacement, the same ones for both systems. If a system was trained
with several seeds, each resample also draws as many of its runs, so that the interval covers the variance of training and
that of the examples; with fewer than about five runs the former is underestimated.

A score is a function of statistics summed over examples, so F1 and similar scores are resampled as exactly as accuracy, and
10,000 resamples are a few matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyseme.base.errors import UsageError

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]
"""From sums (..., k) to scores (...), where 1 is perfect."""
_CELLS = 1 << 20
"""Draws held in memory at a time."""
_TIE = 1e-12
"""Scores that differ only by rounding are equal."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A value and its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """The comparison of a new system with an old one."""

    old: float
    new: float
    """Scores on all examples, averaged over runs."""
    difference: ConfidenceInterval
    """new - old."""
    p: float
    """The p-value: the fraction of resamples in which the new system is not better."""
    reduction: ConfidenceInterval
    """The relative error reduction, (new - old) / (1 - old): 0.2 if a fifth of the errors is gone."""
    level: float
    """The confidence level of the intervals."""
    resamples: int


def f1_score(sums: Floats) -> Floats:
    """Return F1 from (..., 3): correct, predicted, gold; 0 if nothing is correct.

    >>> f1_score(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    return 2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


def paired_bootstrap(
    old: Sequence[ArrayLike],
    new: Sequence[ArrayLike],
    *,
    score: Score | None = None,
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Compare two systems on the same examples.

    `old`, `new`: the statistics of each run (seed) of a system, (examples,) or (examples, k). Without `score` they are one
    number per example, such as 1 for a correct answer and 0 for a wrong one, and the score is their mean. With it, any score
    that follows from sums: `f1_score` of `span_statistics`, or macro F1 of the one-hot cells of a confusion matrix.

    >>> result = paired_bootstrap([[1, 0, 0, 0] * 50], [[1, 1, 0, 0] * 50])
    >>> result.old, result.new, round(result.reduction.value, 3), result.p < 0.001
    (0.25, 0.5, 0.333, True)
    """
    return paired_bootstrap_of_mean([ExampleSet(old, new, score)], resamples=resamples, level=level, seed=seed)


@dataclass(frozen=True)
class ExampleSet:
    """A set of examples on which two systems are compared; see `paired_bootstrap`."""

    old: Sequence[ArrayLike]
    new: Sequence[ArrayLike]
    score: Score | None = None


def paired_bootstrap_of_mean(
    sets: Sequence[ExampleSet], *, resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Compare two systems by the mean of their scores on several sets, each with its own score.

    Examples are drawn from each set separately. A run is one seed on all sets, so runs have the same order in every set, and
    are drawn together.

    >>> easy, hard = ExampleSet([[1, 1, 0, 0] * 50], [[1, 1, 1, 0] * 50]), ExampleSet([[0, 0] * 50], [[1, 0] * 50])
    >>> result = paired_bootstrap_of_mean([easy, hard])
    >>> result.old, result.new, result.reduction.value
    (0.25, 0.625, 0.5)
    """
    if resamples < 1 or not 0 < level < 1:
        raise UsageError(f"resamples={resamples} and level={level} are out of range; allowed: 1 or more, and between 0 and 1")
    counts = {(len(each_set.old), len(each_set.new)) for each_set in sets}
    if len(counts) != 1:
        raise UsageError(
            f"the sets have {sorted(counts)} runs (old, new); a mean over sets needs the same number in each, at least one"
        )
    random = np.random.default_rng(seed)
    each = [_scores(each_set, resamples, random) for each_set in sets]
    observed, scores = (np.mean([pair[i] for pair in each], axis=0) for i in (0, 1))
    runs = len(sets[0].old)
    old_scores = _mean_of_drawn_runs(scores[:, :runs], random)
    new_scores = _mean_of_drawn_runs(scores[:, runs:], random)
    old_score, new_score = float(observed[:runs].mean()), float(observed[runs:].mean())
    differences = new_scores - old_scores
    return Comparison(
        old=old_score,
        new=new_score,
        difference=_estimate(new_score - old_score, differences, level),
        p=(int((differences <= _TIE).sum()) + 1) / (resamples + 1),  # never 0, which no sample can prove
        reduction=_estimate(float(_reduction(old_score, new_score)), _reduction(old_scores, new_scores), level),
        level=level,
        resamples=resamples,
    )


def _scores(examples: ExampleSet, resamples: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the scores of all runs, old ones first: on all examples (runs,), and on each resample (resamples, runs)."""
    before, after, score = _runs("old", examples.old), _runs("new", examples.new), examples.score
    if before.shape[1:] != after.shape[1:]:
        given = f"(examples, statistics) are {before.shape[1:]} for old and {after.shape[1:]} for new"
        raise UsageError(f"{given}; both systems must be scored on the same examples")
    if score is None:
        if before.shape[2] != 1:
            raise UsageError(f"there are {before.shape[2]} statistics per example; give the score that follows from their sums")
        score = _mean_of(before.shape[1])
    both = np.concatenate([before, after])
    observed = score(both.sum(1))
    scores = score(_resampled_sums(both, resamples, random))
    if observed.shape != both.shape[:1] or scores.shape != (resamples, len(both)):
        raise UsageError(f"score returned {scores.shape} for sums (resamples, runs, statistics); expected (resamples, runs)")
    return observed, scores


def _runs(name: str, runs: Sequence[ArrayLike]) -> Floats:
    """Return all runs as one array, (runs, examples, k)."""
    arrays = [np.asarray(run, dtype=np.float64) for run in runs]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) != 1 or len(shapes[0]) not in (1, 2) or 0 in shapes[0]:
        given = ", ".join(map(str, shapes)) or "none"
        raise UsageError(
            f"{name} needs one array for each run, all (examples,) or (examples, statistics); got {given} "
            f"(for a single run, give a list of one array)"
        )
    stacked = np.stack(arrays).reshape(len(arrays), shapes[0][0], -1)
    if not np.isfinite(stacked).all():
        raise UsageError(f"{name} has statistics that are not finite; fix them, or drop these examples from both")
    return stacked


def _mean_of(examples: int) -> Score:
    return lambda sums: sums[..., 0] / examples


def _resampled_sums(statistics: Floats, resamples: int, random: np.random.Generator) -> Floats:
    """Return (resamples, runs, k) from (runs, examples, k): how often each example is drawn, times its statistics."""
    runs, examples, k = statistics.shape
    table = statistics.transpose(1, 0, 2).reshape(examples, runs * k)
    sums = np.empty((resamples, runs * k))
    step = max(1, _CELLS // examples)
    for begin in range(0, resamples, step):
        rows = min(step, resamples - begin)
        drawn = random.integers(examples, size=(rows, examples)) + examples * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * examples).reshape(rows, examples)
        sums[begin : begin + rows] = times.astype(np.float64) @ table
    return sums.reshape(resamples, runs, k)


def _mean_of_drawn_runs(scores: Floats, random: np.random.Generator) -> Floats:
    """Return (resamples,) from (resamples, runs): the mean over runs drawn with replacement, in each resample."""
    resamples, runs = scores.shape
    drawn = random.integers(runs, size=(resamples, runs))
    return np.take_along_axis(scores, drawn, axis=1).mean(1)


def _reduction(old: Floats | float, new: Floats | float) -> Floats:
    """Return (new - old) / (1 - old); if old makes no errors, 0 if new makes none either, else minus infinity."""
    gain, errors = np.asarray(new) - np.asarray(old), 1 - np.asarray(old)
    none = np.where(gain < 0, -math.inf, 0.0)
    return np.where(errors > 0, gain / np.where(errors > 0, errors, 1), none)


def _estimate(value: float, resampled: Floats, level: float) -> ConfidenceInterval:
    """Return the interval that excludes equal fractions of the resamples at both ends."""
    ordered = np.sort(resampled)
    out = math.floor((1 - level) / 2 * len(ordered))
    return ConfidenceInterval(value, float(ordered[out]), float(ordered[-1 - out]))
