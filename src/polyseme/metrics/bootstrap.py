"""Is the new system better? The paired bootstrap over examples (Efron & Tibshirani 1993; Koehn 2004), and over seeds.

Each resample draws as many examples as there are, with replacement, the same ones for both systems. Where a system was
trained with several seeds, each resample also draws as many of its runs, so that the interval covers luck in training as
well as luck in the choice of examples; with fewer than about five runs that second part is an underestimate.

A score is a function of statistics summed over examples, so that F1 and the like are resampled as exactly as accuracy, and
10,000 resamples are a few matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyseme.base.errors import UsageError
from polyseme.metrics.spans import spans

Floats = NDArray[np.float64]
Score = Callable[[Floats], Floats]
"""From sums (..., k) to scores (...), of which 1 is perfect."""
_CELLS = 1 << 20
"""Draws held in memory at a time."""
_TIE = 1e-12
"""Scores that differ by rounding only are equal."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A number and the interval in which it lies."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """A new system against an old one."""

    old: float
    new: float
    """Scores on all examples, the mean over runs."""
    difference: ConfidenceInterval
    """new - old."""
    p: float
    """Of no gain: the share of resamples in which the new system is not better."""
    reduction: ConfidenceInterval
    """Of errors, (new - old) / (1 - old): 0.2 where a fifth of the errors is gone."""
    level: float
    """How often intervals such as these hold the truth."""
    resamples: int


def f1_score(sums: Floats) -> Floats:
    """F1 from (..., 3): right, predicted, gold; 0 where nothing is right.

    >>> f1_score(np.array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    return 2 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


def span_statistics(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Floats:
    """(sentences, 3): spans that are right, predicted, and in the truth, for `f1_score`.

    >>> span_statistics([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]]).tolist()
    [[1.0, 2.0, 2.0]]
    """
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise UsageError("the truth and the answers differ in the number of sentences or of words")
    pairs = [(set(spans(truth)), set(spans(answer))) for truth, answer in zip(gold, predicted, strict=True)]
    return np.array([[len(truth & answer), len(answer), len(truth)] for truth, answer in pairs], np.float64).reshape(-1, 3)


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

    `old`, `new`: for each run (seed) of a system its statistics, (examples,) or (examples, k). Without `score` they are one
    number an example, such as 1 where the answer is right and 0 where not, and the score is their mean. With it, any score
    that follows from sums: `f1_score` of `span_statistics`, or macro F1 of one-hot cells of a confusion table.

    >>> result = paired_bootstrap([[1, 0, 0, 0] * 50], [[1, 1, 0, 0] * 50])
    >>> result.old, result.new, round(result.reduction.value, 3), result.p < 0.001
    (0.25, 0.5, 0.333, True)
    """
    return paired_bootstrap_of_mean([ExampleSet(old, new, score)], resamples=resamples, level=level, seed=seed)


@dataclass(frozen=True)
class ExampleSet:
    """One of several sets of examples on which two systems are compared: see `paired_bootstrap`."""

    old: Sequence[ArrayLike]
    new: Sequence[ArrayLike]
    score: Score | None = None


def paired_bootstrap_of_mean(
    parts: Sequence[ExampleSet], *, resamples: int = 10_000, level: float = 0.95, seed: int = 0
) -> Comparison:
    """Compare two systems by the mean of their scores on several sets, each with a score of its own.

    Examples are drawn from each set by itself. A run is what one seed gave on all sets, so runs stand in the same order
    in every part, and a resample draws them whole.

    >>> easy, hard = ExampleSet([[1, 1, 0, 0] * 50], [[1, 1, 1, 0] * 50]), ExampleSet([[0, 0] * 50], [[1, 0] * 50])
    >>> result = paired_bootstrap_of_mean([easy, hard])
    >>> result.old, result.new, result.reduction.value
    (0.25, 0.625, 0.5)
    """
    if resamples < 1 or not 0 < level < 1:
        raise UsageError(f"resamples={resamples} and level={level} were given; expected at least 1, and between 0 and 1")
    counts = {(len(part.old), len(part.new)) for part in parts}
    if len(counts) != 1:
        raise UsageError(
            f"the sets have {sorted(counts)} runs (old, new); a mean over sets needs at least one, and as many in each"
        )
    random = np.random.default_rng(seed)
    each = [_scores(part, resamples, random) for part in parts]
    observed, scores = (np.mean([pair[place] for pair in each], axis=0) for place in (0, 1))
    runs = len(parts[0].old)
    old_scores = _mean_of_drawn_runs(scores[:, :runs], random)
    new_scores = _mean_of_drawn_runs(scores[:, runs:], random)
    old_score, new_score = float(observed[:runs].mean()), float(observed[runs:].mean())
    differences = new_scores - old_scores
    return Comparison(
        old=old_score,
        new=new_score,
        difference=_estimate(new_score - old_score, differences, level),
        p=(int((differences <= _TIE).sum()) + 1) / (resamples + 1),  # never 0, which no sample can show
        reduction=_estimate(float(_reduction(old_score, new_score)), _reduction(old_scores, new_scores), level),
        level=level,
        resamples=resamples,
    )


def _scores(part: ExampleSet, resamples: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """The scores of all runs, those of old first: on all examples (runs,), and on each resample (resamples, runs)."""
    before, after, score = _runs("old", part.old), _runs("new", part.new), part.score
    if before.shape[1:] != after.shape[1:]:
        given = f"(examples, statistics) are {before.shape[1:]} for old and {after.shape[1:]} for new"
        raise UsageError(f"{given}; both systems must be scored on the same examples")
    if score is None:
        if before.shape[2] != 1:
            raise UsageError(f"there are {before.shape[2]} statistics an example; give the score that follows from their sums")
        score = _mean_of(before.shape[1])
    both = np.concatenate([before, after])
    observed = score(both.sum(1))
    scores = score(_resampled_sums(both, resamples, random))
    if observed.shape != both.shape[:1] or scores.shape != (resamples, len(both)):
        raise UsageError(f"score gave {scores.shape} for sums (resamples, runs, statistics); expected (resamples, runs)")
    return observed, scores


def _runs(name: str, runs: Sequence[ArrayLike]) -> Floats:
    """(runs, examples, k)."""
    arrays = [np.asarray(run, dtype=np.float64) for run in runs]
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) != 1 or len(shapes[0]) not in (1, 2) or 0 in shapes[0]:
        given = ", ".join(map(str, shapes)) or "none"
        raise UsageError(
            f"{name} needs one array for each run, all (examples,) or (examples, statistics); got {given} "
            f"(of a single run, give a list of one array)"
        )
    stacked = np.stack(arrays).reshape(len(arrays), shapes[0][0], -1)
    if not np.isfinite(stacked).all():
        raise UsageError(f"{name} holds statistics that are not finite numbers; mend them, or drop these examples from both")
    return stacked


def _mean_of(examples: int) -> Score:
    return lambda sums: sums[..., 0] / examples


def _resampled_sums(statistics: Floats, resamples: int, random: np.random.Generator) -> Floats:
    """(resamples, runs, k) from (runs, examples, k): how often each example was drawn, times its statistics."""
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
    """(resamples,) from (resamples, runs): in each resample the mean over as many runs, drawn with replacement."""
    resamples, runs = scores.shape
    drawn = random.integers(runs, size=(resamples, runs))
    return np.take_along_axis(scores, drawn, axis=1).mean(1)


def _reduction(old: Floats | float, new: Floats | float) -> Floats:
    """(new - old) / (1 - old); where old makes no errors, 0 if new makes none either, else minus infinity."""
    gain, errors = np.asarray(new) - np.asarray(old), 1 - np.asarray(old)
    none = np.where(gain < 0, -math.inf, 0.0)
    return np.where(errors > 0, gain / np.where(errors > 0, errors, 1), none)


def _estimate(value: float, resampled: Floats, level: float) -> ConfidenceInterval:
    """The interval that leaves out equal shares of the resamples at both ends."""
    ordered = np.sort(resampled)
    out = math.floor((1 - level) / 2 * len(ordered))
    return ConfidenceInterval(value, float(ordered[out]), float(ordered[-1 - out]))
