"""The paired bootstrap: known cases, the exact distribution, coverage, and SciPy where it is installed."""

import math

import numpy as np
import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.bootstrap import (
    Comparison,
    ExampleSet,
    f1_score,
    paired_bootstrap,
    paired_bootstrap_of_mean,
)
from polyseme.metrics.spans import span_scores, span_statistics


@pytest.fixture
def random():
    return np.random.default_rng(0)


def test_identical_systems(random):
    right = random.random(300) < 0.8
    found = paired_bootstrap([right], [right], resamples=500)
    assert (found.difference.low, found.difference.value, found.difference.high) == (0, 0, 0)
    assert (found.p, found.reduction.value) == (1, 0)
    found = paired_bootstrap([right], [right] * 3, resamples=500)  # rounding in the mean over runs is no gain
    assert found.p == 1


def test_systems_alike(random):
    old, new = random.random((2, 5, 400)) < 0.8
    found = paired_bootstrap(old, new, resamples=2000)
    assert found.difference.low < 0 < found.difference.high
    assert found.reduction.low < 0 < found.reduction.high
    assert 0.05 < found.p < 0.95


def test_one_always_better(random):
    old = random.random(400) < 0.7
    new = old.copy()
    new[np.flatnonzero(~old)[:60]] = True
    found = paired_bootstrap([old], [new], resamples=999)
    assert found.p == 1 / 1000
    assert found.difference.value == pytest.approx(60 / 400)
    assert 0 < found.difference.low < 60 / 400 < found.difference.high
    assert found.reduction.value == pytest.approx(60 / (~old).sum())
    assert 0 < found.reduction.low < found.reduction.value < found.reduction.high
    back = paired_bootstrap([new], [old], resamples=999)
    assert (back.p, back.difference.value) == (1, -found.difference.value)


def test_against_the_exact_distribution():
    # of 10 examples 3 are won and 1 is lost: a resample's gain is a sum of 10 draws, whose distribution is a convolution
    old, new = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0, 0]), np.array([1, 1, 1, 0, 1, 1, 1, 1, 0, 0])
    chances = np.array([1.0])
    for _ in range(10):
        chances = np.convolve(chances, [0.1, 0.6, 0.3])  # of -1, 0, +1
    found = paired_bootstrap([old], [new], resamples=40_000)
    assert found.p == pytest.approx(chances[:11].sum(), abs=0.01)
    gains = np.arange(-10, 11) / 10
    low, high = (gains[np.searchsorted(np.cumsum(chances), q)] for q in (0.025, 0.975))
    assert (found.difference.low, found.difference.high) == pytest.approx((low, high))


def test_intervals_cover_the_truth_as_often_as_they_say(random):
    held = 0
    for trial in range(300):
        old, new = random.random((2, 200)) < np.array([[0.6], [0.7]])
        found = paired_bootstrap([old], [new], resamples=400, level=0.9, seed=trial)
        held += found.difference.low <= 0.1 <= found.difference.high
    assert 0.85 < held / 300 < 0.95  # three standard errors around 0.9


def test_luck_in_training_widens_the_interval(random):
    base = random.random((6, 2000)) < 0.8
    steady = paired_bootstrap(base[:3], base[3:], resamples=500)
    shaky = base.copy()
    shaky[3, :300], shaky[4, :300] = True, False
    found = paired_bootstrap(base[:3], shaky[3:], resamples=500)
    assert found.difference.high - found.difference.low > 2 * (steady.difference.high - steady.difference.low)
    assert found.new == pytest.approx(shaky[3:].mean())


def test_seeded(random):
    old, new = random.random((2, 3, 100)) < 0.8
    one, two, other = (paired_bootstrap(old, new, resamples=300, seed=seed) for seed in (1, 1, 2))
    assert one == two != other
    assert isinstance(one, Comparison) and (one.resamples, one.level) == (300, 0.95)


def test_many_examples_go_in_parts(monkeypatch, random):
    old, new = random.random((2, 1, 50)) < 0.8
    whole = paired_bootstrap(old, new, resamples=101)
    monkeypatch.setattr("polyseme.metrics.bootstrap._CELLS", 7)
    assert paired_bootstrap(old, new, resamples=101) == whole


def test_f1_of_spans():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"], ["B-ORG"]] * 20
    old = [["B-PER", "O", "O", "B-LOC"], ["O", "B-LOC"], ["O"]] * 20
    new = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"], ["B-ORG"]] * 20
    statistics = [span_statistics(gold, answers) for answers in (old, new)]
    assert statistics[0][:3].tolist() == [[1, 2, 2], [0, 1, 0], [0, 0, 1]]
    found = paired_bootstrap([statistics[0]], [statistics[1]], score=f1_score, resamples=500)
    assert (found.old, found.new) == pytest.approx((span_scores(gold, old).f1, span_scores(gold, new).f1))
    assert found.p < 0.01 and found.difference.low > 0
    with pytest.raises(UsageError, match="differ in the number"):
        span_statistics(gold, old[1:])


def test_any_score_of_sums(random):
    """Matthews correlation of two classes, from one-hot cells of the confusion table."""

    def matthews(sums):
        a, b, c, d = np.moveaxis(sums, -1, 0)
        return (a * d - b * c) / np.sqrt((a + b) * (a + c) * (d + b) * (d + c))

    gold = random.random(500) < 0.4
    systems = [np.where(random.random(500) < right, gold, ~gold) for right in (0.7, 0.9)]
    old, new = (np.eye(4)[gold * 2 + answers] for answers in systems)
    found = paired_bootstrap([old], [new], score=matthews, resamples=500)
    assert found.new == pytest.approx(np.corrcoef(gold, systems[1])[0, 1])
    assert found.difference.low > 0


def test_no_errors_to_reduce():
    found = paired_bootstrap([[1, 1, 1]], [[1, 1, 1]], resamples=50)
    assert (found.reduction.low, found.reduction.value, found.reduction.high) == (0, 0, 0)
    found = paired_bootstrap([[1, 1, 1]], [[1, 1, 0]], resamples=50)
    assert (found.reduction.low, found.reduction.value) == (-math.inf, -math.inf)


def test_against_scipy(random):
    stats = pytest.importorskip("scipy.stats")
    old, new = (random.random((2, 300)) < np.array([[0.7], [0.8]])).astype(float)

    def reduction(old, new, axis):
        return (new.mean(axis) - old.mean(axis)) / (1 - old.mean(axis))

    asked = {"paired": True, "vectorized": True, "method": "percentile", "n_resamples": 5000, "rng": 0}
    expected = stats.bootstrap((old, new), reduction, **asked).confidence_interval
    found = paired_bootstrap([old], [new], resamples=5000).reduction
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=0.03)


@pytest.mark.parametrize(
    ("old", "new", "asked", "says"),
    [
        ([1, 0], [1, 1], {}, r"old needs one array for each run.*got \(\).*a list of one array"),
        ([], [[1]], {}, "got none"),
        ([[1, 0], [1]], [[1, 1]], {}, r"got \(1,\), \(2,\)"),
        ([[1, 0]], [[]], {}, r"new needs .*got \(0,\)"),
        ([[1, 0]], [[1, 0, 1]], {}, r"\(2, 1\) for old and \(3, 1\) for new"),
        ([[[1, 0]]], [[[1, 0]]], {}, "2 statistics per example; give the score"),
        ([[1, math.nan]], [[1, 1]], {}, "old has statistics that are not finite"),
        ([[1, 0]], [[1, 1]], {"level": 95}, "level=95"),
        ([[1, 0]], [[1, 1]], {"resamples": 0}, "resamples=0"),
        ([[1, 0]], [[1, 1]], {"score": lambda sums: sums}, r"score returned \(10, 2, 1\)"),
    ],
)
def test_wrong_questions(old, new, asked, says):
    with pytest.raises(UsageError, match=says):
        paired_bootstrap(old, new, **{"resamples": 10, **asked})


def test_the_mean_over_sets_against_a_plain_loop() -> None:
    source = np.random.default_rng(3)
    old = [source.random((2, count)) < 0.5 for count in (60, 25)]
    new = [source.random((2, count)) < 0.8 for count in (60, 25)]
    found = paired_bootstrap_of_mean([ExampleSet(list(a), list(b)) for a, b in zip(old, new, strict=True)])
    assert found.old == pytest.approx(np.mean([[run.mean() for run in part] for part in old]))
    assert found.new == pytest.approx(np.mean([[run.mean() for run in part] for part in new]))
    differences = []
    for _ in range(4000):
        drawn = [source.integers(count, size=count) for count in (60, 25)]  # each set by itself
        runs = source.integers(2, size=(2, 2))  # a run is drawn with all its sets
        means = [np.mean([part[run][some].mean() for part, some in zip(side, drawn, strict=True) for run in chosen])
                 for side, chosen in ((old, runs[0]), (new, runs[1]))]  # fmt: skip
        differences.append(means[1] - means[0])
    assert found.difference.low == pytest.approx(np.quantile(differences, 0.025), abs=0.012)
    assert found.difference.high == pytest.approx(np.quantile(differences, 0.975), abs=0.012)


def test_the_mean_over_one_set_is_that_set_and_runs_must_agree() -> None:
    old, new = [[1, 0, 0, 0] * 5], [[1, 1, 0, 0] * 5]
    assert paired_bootstrap_of_mean([ExampleSet(old, new)], seed=4) == paired_bootstrap(old, new, seed=4)
    with pytest.raises(UsageError, match="same number in each"):
        paired_bootstrap_of_mean([ExampleSet(old, new), ExampleSet(old * 2, new)])
    with pytest.raises(UsageError, match="at least one"):
        paired_bootstrap_of_mean([])
