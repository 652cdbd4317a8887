"""The table of a comparison: score, spread over seeds, and what a row gains over the baseline, with a bootstrap interval.

As in Table 1 of Peters et al. 2018: baseline, with, increase absolute and relative. The relative increase is the share of the
baseline's errors that are gone.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.metrics.bootstrap import Comparison, paired_bootstrap
from polyseme.studies.cell import Cell
from polyseme.studies.compare import by_row
from polyseme.studies.sets import labelled_set
from polyseme.studies.train import task_named
from polyseme.tasks.fit import TALLIES

HEAD = ("set", "share", "encoders", "measure", "mean", "spread", "seeds", "increase", "error reduction", "interval")


@dataclass(frozen=True)
class Row:
    """One set with one row of encoders, over all seeds."""

    set: str
    share: float
    """Of the training data."""
    encoders: str
    measure: str
    scores: tuple[float, ...]
    """On the test data, one for each seed."""
    gain: Comparison | None
    """Over the baseline; None: it is the baseline, or cannot be compared."""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return statistics.fmean(self.scores)

    @property
    def spread(self) -> float:
        """Standard deviation over the seeds."""
        return statistics.stdev(self.scores) if len(self.scores) > 1 else 0.0

    def cells(self) -> list[str]:
        """As a person reads it: per cent."""
        numbers = [f"{100 * self.mean:.2f}", f"{100 * self.spread:.2f}", str(len(self.scores))]
        told = [self.set, f"{self.share:.0%}", self.encoders, self.measure, *numbers]
        if self.gain is None:
            return [*told, "", "", ""]
        reduction = self.gain.reduction
        interval = f"{100 * reduction.low:.1f} to {100 * reduction.high:.1f} %"
        return [*told, f"{100 * self.gain.difference.value:+.2f}", f"{100 * reduction.value:.1f} %", interval]


def table(cells: Sequence[Cell], baseline: str) -> list[Row]:
    """A row for each set and encoders that have done cells, compared with the row `baseline` of the same set."""
    found = by_row(cells)
    rows = []
    for (name, share, encoders), members in found.items():
        results = [cell.result or {} for cell in members]
        measure = results[0]["main"]
        scores = tuple(result["scores"]["test"][measure] for result in results)
        base = found.get((name, share, baseline))
        gain = None if base is None or encoders == baseline else compared(base, members)
        rows.append(Row(name, share, encoders, measure, scores, gain))
    return rows


def compared(old: Sequence[Cell], new: Sequence[Cell]) -> Comparison | None:
    """The gain of some cells over others on the same test data, by the paired bootstrap; None where counts are missing."""
    paths = [[Path(cell.out, TALLIES) for cell in cells] for cells in (old, new)]
    if not all(path.is_file() for several in paths for path in several):
        return None
    before, after = ([np.load(path) for path in several] for several in paths)
    return paired_bootstrap(before, after, score=task_named(labelled_set(old[0].set).task).tally_score)


def as_markdown(rows: Sequence[Row]) -> str:
    """A table for documents."""
    whole = all(row.share == 1 for row in rows)  # then the column says nothing
    lines = [list(HEAD), ["---"] * 4 + ["---:"] * (len(HEAD) - 4)]
    lines += [[labelled_set(row.set).title, *row.cells()[1:]] for row in rows]
    shown = [cells[:1] + cells[2 if whole else 1 :] for cells in lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in shown)


def as_csv(rows: Sequence[Row]) -> str:
    """A table for programs: shares of 1, and every seed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["set", "share", "encoders", "measure", "mean", "spread", "error_reduction", "low", "high", "p", "scores"])
    for row in rows:
        gain = row.gain
        told = ["", "", "", ""] if gain is None else [gain.reduction.value, gain.reduction.low, gain.reduction.high, gain.p]
        writer.writerow(
            [row.set, row.share, row.encoders, row.measure, row.mean, row.spread, *told, " ".join(map(str, row.scores))]
        )
    return text.getvalue()
