"""The result of a probe: a table of scores, one row for each layer or combination of layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.display import html_table, named_values


@dataclass(frozen=True)
class ProbeResult:
    """Scores by row and measure."""

    title: str
    measures: tuple[str, ...]
    """The columns, the main one first."""
    rows: Mapping[str, Mapping[str, float]]
    """The scores of each layer, and of combinations of layers."""
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The scores of methods that need no model."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Counts, weights, choices."""
    note: str = ""
    """What to think of the scores, where they tell little; then no row is called the best."""

    @property
    def best(self) -> str | None:
        """The row with the highest score by the main measure; None if no row has one."""
        scores = {name: row[self.measures[0]] for name, row in self.rows.items() if not math.isnan(row[self.measures[0]])}
        return max(scores, key=lambda name: scores[name]) if scores else None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; a score that is NaN is None."""
        return {
            "title": self.title,
            "measures": list(self.measures),
            "rows": {name: _without_nan(row) for name, row in self.rows.items()},
            "baselines": {name: _without_nan(row) for name, row in self.baselines.items()},
            "facts": dict(self.facts),
        }

    def plot(self, path: str | Path) -> Path:
        from polyseme.analysis.plots import plot

        return plot(self, path)

    def __str__(self) -> str:
        rows = {**self.rows, **self.baselines}
        width = max(map(len, rows))
        widths = {measure: max(len(measure) + 2, 12) for measure in self.measures}
        lines = [self.title, " " * width + "".join(f"{measure:>{widths[measure]}}" for measure in self.measures)]
        for name, row in rows.items():
            cells = (f"{_score(row, measure):>{widths[measure]}}" for measure in self.measures)
            mark = "  best" if name == self.best and len(self.rows) > 1 and not self.note else ""
            lines.append(f"{name:{width}}" + "".join(cells) + mark)
        return "\n".join([*lines, *([self.note] if self.note else []), "", named_values(self.facts)])

    def _repr_html_(self) -> str:
        rows = {**self.rows, **self.baselines}
        cells = [[name, *(_score(row, measure) for measure in self.measures)] for name, row in rows.items()]
        caption = f"{self.title}; {self.note}" if self.note else self.title
        return html_table(["", *self.measures], cells, caption=caption)


def _score(row: Mapping[str, float], measure: str) -> str:
    value = row.get(measure, math.nan)
    return "" if math.isnan(value) else f"{value:.4f}"


def _without_nan(row: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in row.items()}
