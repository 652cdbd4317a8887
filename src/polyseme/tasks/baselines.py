"""What anyone would try first, beside a trained task: the most frequent class, and a simple model that is fitted in seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.tasks.base import Task

MAJORITY = "majority"


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


def is_no_better_than_prior(task: Task, train: Sequence[Any], dev: Sequence[Any], scores: Mapping[str, float]) -> bool:
    """Return whether a network has learned nothing: its dev score is at most that of one output for all examples."""
    prior = prior_scores(task, train, dev).get(task.main_metric, 0.0)
    own = scores[task.main_metric]
    return not own > max(0.0 if prior != prior else prior, 0.0)
