"""Where a trained task goes wrong on a file: what is taken for what, the worst answers, and labels that it cannot know.

What counts as wrong, each task says itself (`confusion_matrix`, `example_errors` and `unknown_labels` of `Task`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from polyseme.metrics.classes import Confusion
from polyseme.tasks.base import Task
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel


@dataclass(frozen=True)
class ErrorReport:
    """How well a task answers a file."""

    scores: dict[str, float]
    main: str
    examples: int
    confusion: Confusion | None
    """Of labels, plain tags or types of spans; None where answers are no classes, or there is nothing to tell apart."""
    worst: list[ExampleError]
    unknown_labels: list[UnknownLabel]

    def confused(self, count: int) -> list[tuple[str, str, int]]:
        """What was most often taken for what: truth, answer, times."""
        if self.confusion is None:
            return []
        labels, counts = self.confusion.labels, self.confusion.counts
        places = [(a, b) for a in range(len(labels)) for b in range(len(labels)) if a != b and counts[a, b]]
        places.sort(key=lambda place: -counts[place])
        return [(labels[a], labels[b], int(counts[a, b])) for a, b in places[:count]]


def error_report(task: Task, path: str | Path, *, errors: int = 10) -> ErrorReport:
    """Answer the examples of a file and look at the answers; the worst `errors` of them are kept.

    Among mistakes of the same weight, those come first that the network was surest of.
    """
    examples = task.read(path, task.config)
    strange = task.unknown_labels(examples, task.labels, task.config, path)
    answers = task.answer(task.data(examples))
    table = task.confusion_matrix(examples, answers)
    mistakes = sorted(task.example_errors(examples, answers, path), key=lambda each: (-each.weight, -(each.probability or 0.0)))
    return ErrorReport(task.score(examples, answers), task.main_metric, len(examples), table, mistakes[:errors], strange)
