"""What every probe gives: a table of scores, one row for each layer or way to join layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ProbeResult:
    """Scores by row and measure."""

    title: str
    """What was measured, on what."""
    measures: tuple[str, ...]
    """The columns, the main one first."""
    rows: Mapping[str, Mapping[str, float]]
    """The scores of each layer, and of the layers together."""
    baselines: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The scores of methods that need no model."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is worth knowing: counts, weights, what was chosen."""

    @property
    def best(self) -> str | None:
        """The row with the highest score by the main measure; None where no row has one."""
        scores = {name: row[self.measures[0]] for name, row in self.rows.items() if not math.isnan(row[self.measures[0]])}
        return max(scores, key=lambda name: scores[name]) if scores else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; a score that is not a number is None."""
        return {
            "title": self.title,
            "measures": list(self.measures),
            "rows": {name: _plain(row) for name, row in self.rows.items()},
            "baselines": {name: _plain(row) for name, row in self.baselines.items()},
            "facts": dict(self.facts),
        }


def _plain(row: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in row.items()}
