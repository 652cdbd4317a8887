"""Correlations, against numbers computed by hand and against scipy where it is installed."""

import math

import numpy as np
import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.correlation import pearson, ranks, spearman


def test_by_hand():
    # deviations (-1.5 -.5 .5 1.5) and (-1.25 .75 -.25 .75): products 2.5, squares 5 and 2.75
    assert pearson([1, 2, 3, 4], [1, 3, 2, 3]) == pytest.approx(2.5 / math.sqrt(5 * 2.75))
    # ranks (1 2 3 4) and (1 3.5 2 3.5): products 3, squares 5 and 4.5
    assert spearman([1, 20, 300, 4000], [1, 3, 2, 3]) == pytest.approx(3 / math.sqrt(5 * 4.5))
    assert spearman([1, 2, 3], [9, 4, 1]) == pytest.approx(-1)


def test_ranks_of_ties():
    assert ranks([5, 1, 5, 5, 0]).tolist() == [4, 2, 4, 4, 1]


def test_a_side_without_change_has_no_correlation():
    assert math.isnan(pearson([1, 1, 1], [1, 2, 3])) and math.isnan(spearman([1, 2, 3], [0.1, 0.1, 0.1]))


@pytest.mark.parametrize(("first", "second"), [([1, 2], [1, 2, 3]), ([1], [1]), ([], [])])
def test_lists_that_do_not_fit(first, second):
    with pytest.raises(UsageError, match="two lists of the same length"):
        pearson(first, second)


def test_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(0)
    for _ in range(20):
        x, y = random.integers(0, 9, 30), random.normal(size=30)
        assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic)
