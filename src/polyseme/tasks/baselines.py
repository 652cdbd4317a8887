"""What anyone would try first, beside a trained task: the most frequent class, and a simple model that is fitted in seconds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.tasks.base import Task
from polyseme.tasks.predictions import LabelPrediction

MAJORITY = "majority"
IMBALANCED = 0.9
"""The share of the most frequent class above which accuracy says little."""
_LEAST = 1e-12  # a probability, so that its logarithm is finite


def score_baselines(task: Task, train: Sequence[Any], sets: Mapping[str, Sequence[Any]]) -> dict[str, Any] | None:
    """Return the scores of the baselines of a task on each set, as `result.json` has them; None: the task has none.

    `name` and the scores by set are of the simple model; under `majority` are those of the most frequent class or tag.
    """
    found: dict[str, Any] = {}
    outputs = task.baseline_outputs(train, sets)
    if outputs is not None:
        found = {"name": task.baseline_name, **{name: task.score(sets[name], each) for name, each in outputs.items()}}
    majority = {name: prior_scores(task, train, examples) for name, examples in sets.items()}
    if all(majority.values()):
        found[MAJORITY] = majority
    return found or None


def prior_scores(task: Task, train: Sequence[Any], examples: Sequence[Any]) -> dict[str, float]:
    """Return the scores of the most frequent output of the training data for all examples; empty where there is none."""
    outputs = task.majority_outputs(train, examples)
    return {} if outputs is None else task.score(examples, outputs)


def is_no_better_than_prior(
    task: Task, train: Sequence[Any], dev: Sequence[Any], outputs: Sequence[Any], scores: Mapping[str, float]
) -> bool:
    """Return whether a network has learned nothing: its dev score is at most that of one output for all examples.

    Where nearly all examples have one class, its probabilities must be no better than the class frequencies, too.
    """
    return not _beats_prior(task, train, dev, scores) and not hidden_by_accuracy(task, train, dev, outputs, scores)


def hidden_by_accuracy(
    task: Task, train: Sequence[Any], dev: Sequence[Any], outputs: Sequence[Any], scores: Mapping[str, float]
) -> str:
    """Return the class that nearly all examples have, if accuracy does not show what a network has learned; else empty.

    Its accuracy is at most that of this class for all, but its log loss on the dev data is less than that of the frequencies.
    """
    if task.main_metric != "accuracy" or not all(isinstance(output, LabelPrediction) for output in outputs):
        return ""
    counts = Counter(example.label for example in train)
    label, most = counts.most_common(1)[0]
    if most < IMBALANCED * counts.total() or _beats_prior(task, train, dev, scores):
        return ""
    known = [(example.label, output) for example, output in zip(dev, outputs, strict=True) if example.label in counts]
    own = sum(-math.log(max(output.probabilities[gold], _LEAST)) for gold, output in known)
    return label if own < sum(-math.log(counts[gold] / counts.total()) for gold, _ in known) else ""


def _beats_prior(task: Task, train: Sequence[Any], dev: Sequence[Any], scores: Mapping[str, float]) -> bool:
    prior = prior_scores(task, train, dev).get(task.main_metric, 0.0)
    return scores[task.main_metric] > max(0.0 if prior != prior else prior, 0.0)
