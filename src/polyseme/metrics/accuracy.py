"""Accuracy: the fraction of correct predictions."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.base.errors import UsageError


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Return the fraction of predictions that equal the gold label.

    >>> accuracy(["a", "b", "a", "a"], ["a", "b", "b", "a"])
    0.75
    """
    if len(gold) != len(predicted) or not gold:
        raise UsageError(f"{len(predicted)} predictions for {len(gold)} gold labels; accuracy needs one for each")
    return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold)
