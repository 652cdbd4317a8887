"""The files of a comparison, of what is done so far: tables for people and for programs, and plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polyseme.base.files import write_text
from polyseme.pretraining.cost import Cost
from polyseme.studies import costs
from polyseme.studies.compare import Study
from polyseme.studies.plots import has_costs, plot_costs, plot_learning_curve, plot_scores
from polyseme.studies.table import Row, as_csv, as_markdown, table

Costs = Sequence[tuple[str, Cost | None]]
"""Names, and what each cost."""


def default_baseline(rows: tuple[str, ...]) -> str:
    """The row to compare with where nobody says: the first but `none`."""
    return next((row for row in rows if row != "none"), rows[0])


def write_report(study: Study, baseline: str | None = None, *, plot: bool = False, models: Costs | None = None) -> str:
    """Write `table.md` and `table.csv`, and where wanted pictures; gives the table as Markdown, empty where nothing is done.

    `models`: what is told of costs, in place of those of the rows.
    """
    out, found = study.out, table(study.experiments(), baseline or default_baseline(study.rows), study.groups)
    if not found:
        return ""
    told = "\n".join(filter(None, [as_markdown(found), costs.as_markdown(_costs(found) if models is None else models)]))
    write_text(out / "table.md", told)
    write_text(out / "table.csv", as_csv(found))
    if plot:
        _draw(found, out)
    return told


def _costs(rows: list[Row]) -> Costs:
    """What each row of encoders cost, where any tells; two languages have two `word2vec`s."""
    each: list[tuple[str, Cost | None]] = []
    for row in rows:
        each += [] if (row.encoders, row.cost) in each else [(row.encoders, row.cost)]
    return each if has_costs(rows) else []


def _draw(rows: list[Row], out: Path) -> None:
    if len({row.share for row in rows}) > 1:
        for name in dict.fromkeys(row.set for row in rows):
            plot_learning_curve([row for row in rows if row.set == name], out / f"curve-{name}.png")
        return
    plot_scores(rows, out / "table.png")
    if has_costs(rows):
        plot_costs(rows, out / "cost.png")
