"""What a trained task is: its network, labels, encoders, scores and learned layer weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.display import html_table, named_values
from polyseme.base.files import read_json
from polyseme.metrics.spans import are_span_tags
from polyseme.tasks.folder import load
from polyseme.tasks.predictions import LayerWeights
from polyseme.tasks.training_report import TrainingReport

RESULT = "result.json"

_WIDTH = 48  # columns of labels


@dataclass(frozen=True)
class TaskInfo:
    """The facts about a trained task."""

    facts: dict[str, Any]
    report: TrainingReport | None
    """Its scores; None where the training has not ended."""
    layer_weights: LayerWeights

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        scores = None if self.report is None else self.report.scores
        baseline = {} if self.report is None or self.report.baseline is None else {"baseline": self.report.baseline}
        return {**self.facts, "scores": scores, **baseline, "layer_weights": self.layer_weights.weights}

    def __str__(self) -> str:
        facts = {**self.facts, "labels": _listed(self.facts["labels"])}
        weights = f"layer weights\n{self.layer_weights}" if self.layer_weights.weights else ""
        scores = "not trained to the end" if self.report is None else str(self.report)
        return "\n\n".join(filter(None, [named_values(facts), scores, weights]))

    def _repr_html_(self) -> str:
        facts = [(name, ", ".join(value) if isinstance(value, list) else value) for name, value in self.facts.items()]
        scores = "" if self.report is None else self.report._repr_html_()
        return html_table(["", "task"], facts) + scores + self.layer_weights._repr_html_()


def _listed(labels: list[str]) -> str:
    """Labels on one line; of tags of spans their types.

    >>> _listed(["O", "B-PER", "I-PER", "E-PER", "S-PER"]), _listed([f"label-{number}" for number in range(9)])
    ('PER (spans)', 'label-0, label-1, label-2, label-3, label-4, 4 more')
    """
    names, suffix = list(labels), ""
    if are_span_tags(labels):
        names, suffix = sorted({label[2:] or "span" for label in labels if label != "O"}), " (spans)"
    shown = names
    while len(", ".join(shown)) > _WIDTH and len(shown) > 1:
        shown = shown[:-1]
    return ", ".join([*shown, *([f"{len(names) - len(shown)} more"] if len(shown) < len(names) else [])]) + suffix


def task_info(path: str | Path) -> TaskInfo:
    """Describe a trained task by its folder."""
    folder = Path(path)
    task = load(folder)
    facts = {
        "name": folder.resolve().name,
        "task": task.kind,
        "network": getattr(task.config, "network", None),
        "labels": task.labels if len(task.labels) <= 1000 else [f"{len(task.labels):,} words"],
        "encoders": ", ".join(Path(each.source or each.kind).name for each in task.features.contextual) or "none",
        "mode": task.config.features.mode,
        "splitter": task.splitter.name,
        "parameters": sum(weight.numel() for weight in task.parameters()),
    }
    return TaskInfo(facts, stored_report(folder), task.layer_weights())


def stored_report(folder: Path) -> TrainingReport | None:
    """Return the scores that a task's folder keeps, without the errors behind them; None where training has not ended."""
    if not (folder / RESULT).exists():
        return None
    result = read_json(folder / RESULT)
    more = {"warning": result.get("warning", ""), "examples": result.get("examples", {})}
    return TrainingReport(result["main"], result["scores"], result.get("baseline"), **more)
