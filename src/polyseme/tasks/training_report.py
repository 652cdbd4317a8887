"""What a run shows after it has trained: scores beside baselines, the confusion matrix, the worst errors, the layer weights.

The same report prints in a terminal, within 80 columns, and renders in a notebook.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from polyseme.base.display import columns, format_score, html_table, short
from polyseme.base.errors import arg
from polyseme.tasks.error_analysis import WIDTH, ErrorReport, ExampleError, confusion_text, few_examples, html_confusion
from polyseme.tasks.predictions import LayerWeights

ERRORS = 4  # examples
WRONG = 3  # words or spans of each
MODEL = "this model"
_EQUAL = 0.05  # points, below which scores print as equal
Scores = Mapping[str, float]
Row = tuple[str, str, Scores]
"""A data set, a system, and its scores."""


@dataclass(frozen=True)
class TrainingReport:
    """How well a trained task does."""

    main: str
    """The main metric."""
    scores: dict[str, dict[str, float]]
    """By data set: dev, test."""
    baseline: Mapping[str, Any] | None = None
    """As `result.json` has it: `name`, scores by data set, and those of the most frequent class under `majority`."""
    errors: ErrorReport | None = None
    """Of the test data, or of the dev data where there is none."""
    layer_weights: LayerWeights = field(default_factory=lambda: LayerWeights({}))
    warning: str = ""
    """That the network has learned nothing, if so."""
    examples: Mapping[str, int] = field(default_factory=dict)
    """How many examples each data set has."""
    longer: str = ""
    """How to train longer, where the run was short."""

    def __str__(self) -> str:
        warning = textwrap.fill(f"WARNING: {self.warning}", WIDTH) if self.warning else ""
        about = (self.verdict(), textwrap.fill(self.advice(), WIDTH), textwrap.fill(self.caution(), WIDTH), warning)
        blocks = [self._score_table(), *(text for text in about if text)]
        if self.errors is not None and self.errors.confusion is not None:
            blocks.append(confusion_block(self.errors, f"{self._set} data"))
        if self.errors is not None and self.errors.worst:
            blocks.append(worst_block(self.errors, f"{self._set} data"))
        if self.layer_weights.weights:
            blocks.append(f"\nlayer weights\n{self.layer_weights}")
        return "\n".join(blocks)

    def verdict(self) -> str:
        """Return a sentence that compares the model with the best baseline; empty without one."""
        values, own = self.baselines(self._set), self.scores.get(self._set, {}).get(self.main, math.nan)
        if not values or math.isnan(own):
            return ""
        name = max(values, key=lambda each: values[each])
        points = 100 * (own - values[name])
        side = f"{abs(points):.1f} points {'above' if points > 0 else 'BELOW'}" if abs(points) >= _EQUAL else "equal to"
        return short(f"{self._set} {self.main} {100 * own:.1f}: {side} {name}", WIDTH)

    def advice(self) -> str:
        """Return what helps where a baseline is as good as the model; else, or where a warning says more, nothing."""
        values, own = self.baselines(self._set), self.scores.get(self._set, {}).get(self.main, math.nan)
        if self.warning or not values or math.isnan(own) or 100 * (own - max(values.values())) >= _EQUAL or own >= 1:
            return ""
        return f"no better than a baseline: {self.longer or 'more labelled data helps more than other options'}"

    def caution(self) -> str:
        """Return a sentence that says how much chance moves the score, where few examples were scored; else nothing."""
        own = self.scores.get(self._set, {}).get(self.main, math.nan)
        few = few_examples(self.main, own, self.examples.get(self._set, 0), f"{self._set} example")
        return f"{few}; {arg('folds', 10)} scores all examples" if few and self._set == "dev" else few

    def baselines(self, split: str) -> dict[str, float]:
        """Return the main metric of each baseline on a data set."""
        found = {name: scores.get(split, {}) for name, scores in baseline_scores(self.baseline).items()}
        return {name: scores[self.main] for name, scores in found.items() if self.main in scores}

    def rows(self) -> list[Row]:
        """Return the scores of the model and of the baselines on each data set."""
        systems: dict[str, Mapping[str, Scores]] = {MODEL: self.scores, **baseline_scores(self.baseline)}
        return [(split, name, scores[split]) for split in self.scores for name, scores in systems.items() if split in scores]

    @property
    def _set(self) -> str:
        return list(self.scores)[-1] if self.scores else "dev"

    def _score_table(self) -> str:
        header, rows = self._cells()
        text = columns([header, *rows], indent=0, right=range(len(header) - len(self._metrics()), len(header)))
        if max(map(len, text.splitlines())) <= WIDTH:
            return text
        turned = [list(each) for each in zip(header, *rows, strict=True)]  # many metrics: one on each line
        return columns(turned, indent=0, right=range(1, len(turned[0])))

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        rows, metrics = self.rows(), self._metrics()
        alone = len({name for _, name, _ in rows}) < 2
        values = [[format_score(scores.get(metric)) for metric in metrics] for _, _, scores in rows]
        names = [[split] if alone else [split if name == MODEL else "", name] for split, name, _ in rows]
        return ["" for _ in names[0]] + metrics, [[*a, *b] for a, b in zip(names, values, strict=True)]

    def _metrics(self) -> list[str]:
        return list(dict.fromkeys(metric for _, _, scores in self.rows() for metric in scores))

    def _repr_html_(self) -> str:
        header, rows = self._cells()
        caption = "; ".join(text for text in (self.verdict(), self.advice(), self.caution(), self.warning) if text)
        parts = [html_table(header, rows, caption=caption)]
        if self.errors is not None and self.errors.confusion is not None:
            parts.append(html_confusion(self.errors.confusion, caption=f"confusion matrix, {self._set} data"))
        wrong = [
            (" and ".join(filter(None, (error.where, error.equal_ones))), each.text, each.gold, each.predicted)
            for error in _worst(self.errors)
            for each in error.errors
        ]
        if wrong:
            parts.append(html_table(["where", "text", "gold", "predicted"], wrong, caption=f"worst errors, {self._set} data"))
        if self.layer_weights.weights:
            parts.append(self.layer_weights._repr_html_())
        return "".join(parts)


def confusion_block(errors: ErrorReport, data: str) -> str:
    """The confusion matrix of some data, under its title."""
    assert errors.confusion is not None
    table = errors.confusion.without_empty_no_span()
    spans = f" ({table.no_span}: no span there)" if table.no_span in table.labels else ""
    return f"\nconfusion matrix, {data}{spans}\n{confusion_text(table)}"


def worst_block(errors: ErrorReport, data: str) -> str:
    """A few of the worst errors in some data, under a title."""
    worst = _worst(errors)
    return f"\nworst errors, {data}{errors.of_wrong(worst)}\n" + "\n".join(map(str, worst))


def _worst(errors: ErrorReport | None) -> list[ExampleError]:
    return [] if errors is None else [replace(each, errors=each.errors[:WRONG]) for each in errors.worst[:ERRORS]]


def baseline_scores(baseline: Mapping[str, Any] | None) -> dict[str, dict[str, Scores]]:
    """Return the scores of baselines, by their names and data sets.

    >>> baseline_scores({"name": "n-grams", "dev": {"f1": 0.5}, "majority": {"dev": {"f1": 0.1}}})
    {'n-grams': {'dev': {'f1': 0.5}}, 'majority': {'dev': {'f1': 0.1}}}
    """
    if not baseline:
        return {}
    systems = {str(baseline.get("name", "baseline")): baseline, "majority": baseline.get("majority") or {}}
    found = {
        name: {split: scores[split] for split in ("dev", "test") if isinstance(scores.get(split), Mapping)}
        for name, scores in systems.items()
    }
    return {name: scores for name, scores in found.items() if scores}
