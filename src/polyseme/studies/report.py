"""The result of a comparison, of the finished experiments: tables for people and programs, and plots."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.display import columns, html_table
from polyseme.base.files import write_text
from polyseme.pretraining.cost import Cost
from polyseme.studies.plots import has_costs, plot_costs, plot_learning_curve, plot_scores
from polyseme.studies.table import (
    COST_HEADER,
    ComparisonRow,
    NamedCosts,
    as_csv,
    cost_rows,
    equality_warning,
    failure_warning,
    score_header,
    score_rows,
)
from polyseme.tasks.error_analysis import WIDTH

TABLE = "table.md"
"""In the folder of a comparison."""


@dataclass(frozen=True)
class ComparisonResult:
    """The table of a comparison; false if nothing is finished yet."""

    out: Path
    """Folder with table.md, table.csv, and the plots."""
    rows: list[ComparisonRow]
    costs: NamedCosts = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.costs)

    def __str__(self) -> str:
        right = range(3, 10)
        tables = [columns(table, indent=0, right=right) for table in self._tables()]
        warning = textwrap.fill(f"WARNING: {self.warning}", WIDTH) if self.warning else ""
        place = f"The table is in {self.out / TABLE}" if self.rows else ""
        return "\n\n".join([*tables, *filter(None, [warning, place])])

    @property
    def warning(self) -> str:
        """That runs have learned nothing, or that rows cannot be told apart, if so."""
        return failure_warning(self.rows) or equality_warning(self.rows)

    def _repr_html_(self) -> str:
        tables = "".join(html_table(header, rows) for header, *rows in self._tables())
        return tables + (f"<p>WARNING: {html.escape(self.warning)}</p>" if self.warning else "")

    def as_markdown(self) -> str:
        warning = f"**Warning**: {self.warning}\n" if self.warning else ""
        return "\n".join([*(markdown_table(header, rows) for header, *rows in self._tables()), *([warning] if warning else [])])

    def _tables(self) -> list[list[list[str]]]:
        scores = [score_header(self.rows), *score_rows(self.rows)] if self.rows else []
        spent = [list(COST_HEADER), *cost_rows(self.costs)]
        return [table for table in (scores, spent) if len(table) > 1]


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, and so are those of names."""
    texts = {"data set", "encoders", "metric", "train fraction"}
    line = ["---" if name in texts else "---:" for name in header]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, line, *rows))


def write_report(
    out: Path, rows: list[ComparisonRow], *, plot: bool = False, costs: NamedCosts | None = None
) -> ComparisonResult:
    """Write `table.md`, `table.csv` and, on request, plots, and return the result; without rows, write nothing.

    `costs`: shown in place of those of the rows.
    """
    if not rows:
        return ComparisonResult(out, [])
    result = ComparisonResult(out, rows, _costs(rows) if costs is None else costs)
    write_text(out / TABLE, result.as_markdown())
    write_text(out / "table.csv", as_csv(rows))
    if plot:
        _plot(rows, out)
    return result


def _costs(rows: list[ComparisonRow]) -> NamedCosts:
    """The cost of each row of encoders, if any is known; with two languages there are two `word2vec`s."""
    each: list[tuple[str, Cost | None]] = []
    for row in rows:
        each += [] if (row.encoders, row.cost) in each else [(row.encoders, row.cost)]
    return each if has_costs(rows) else []


def _plot(rows: list[ComparisonRow], out: Path) -> None:
    if len({row.train_fraction for row in rows}) > 1:
        for name in dict.fromkeys(row.set for row in rows):
            plot_learning_curve([row for row in rows if row.set == name], out / f"curve-{name}.png")
        return
    plot_scores(rows, out / "table.png")
    if has_costs(rows):
        plot_costs(rows, out / "cost.png")
