"""The share of right answers."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.base.errors import UsageError


def accuracy(gold: Sequence[object], predicted: Sequence[object]) -> float:
    """Answers that equal the truth, divided by all.

    >>> accuracy(["a", "b", "a", "a"], ["a", "b", "b", "a"])
    0.75
    """
    if len(gold) != len(predicted) or not gold:
        raise UsageError(
            f"{len(predicted)} answers for {len(gold)} questions; accuracy needs as many of both, and at least one"
        )
    return sum(a == b for a, b in zip(gold, predicted, strict=True)) / len(gold)
