"""Several trained classifiers as one: the mean of their probabilities or scores.

ULMFiT's published results are those of a forward and a backward model together.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from polyseme.base.errors import UsageError
from polyseme.tasks.predictions import LabelPrediction, ScorePrediction


def combine_tasks(tasks: Sequence[Any]) -> Any:
    """Return the first of several tasks, whose predictions are from now on means over all of them."""
    first, *others = tasks
    for task in tasks:
        if not hasattr(task, "others"):
            raise UsageError(f"{task.kind} tasks cannot be combined; allowed: classification and pairs")
        if task.kind != first.kind or sorted(task.labels) != sorted(first.labels):
            given = f"{first.kind} with the labels {', '.join(first.labels)}, and {task.kind} with {', '.join(task.labels)}"
            raise UsageError(f"only tasks of one kind with the same labels can be combined; got {given}")
    first.others = others
    return first


def mean_outputs(outputs: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the means of the outputs of several tasks for the same examples."""
    return [_mean(each) for each in zip(*outputs, strict=True)]


def _mean(outputs: Sequence[Any]) -> LabelPrediction | ScorePrediction:
    first = outputs[0]
    if isinstance(first, ScorePrediction):
        return ScorePrediction(fmean(each.score for each in outputs))
    probabilities = {label: fmean(each.probabilities[label] for each in outputs) for label in first.probabilities}
    best = max(probabilities, key=probabilities.__getitem__)
    return LabelPrediction(best, probabilities[best], probabilities)
