"""Pearson's and Spearman's correlation; the latter is Pearson's correlation of the ranks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyseme.base.errors import UsageError


def pearson(first: ArrayLike, second: ArrayLike) -> float:
    """Return Pearson's correlation, from -1 to 1; NaN if one side is constant.

    >>> pearson([1, 2, 3], [2, 4, 6])
    1.0
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1 or len(x) < 2:
        raise UsageError(f"a correlation needs two lists of the same length, at least 2; got {x.shape} and {y.shape}")
    if (x == x[0]).all() or (y == y[0]).all():
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1, 1))


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return Pearson's correlation of the ranks; equal numbers share the mean of their ranks.

    >>> spearman([1, 2, 3, 4], [1, 10, 100, 1000])
    1.0
    """
    return pearson(ranks(first), ranks(second))


def ranks(numbers: ArrayLike) -> NDArray[np.float64]:
    """Return ranks from 1 in rising order; equal numbers get the mean of their ranks.

    >>> ranks([30, 10, 30, 20]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, which, counts = np.unique(np.asarray(numbers, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts + 1) / 2)[which]
