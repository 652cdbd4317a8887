"""Comparisons as pictures: a bar for each row of encoders in each set, and score against the share of labelled data, or
against what the encoders cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import TEXT, axis, figure_type, kind_of, plain_axes
from polyseme.base.amounts import duration
from polyseme.base.files import atomic
from polyseme.studies.sets import title_of
from polyseme.studies.table import Row
from polyseme.studies.tuned import TUNED

COLOURS = ("#a3adb5", "#d08c4f", "#2f6690", "#6a994e", "#8e6c9e", "#b5543a",
           "#3a9a9a", "#c9b037", "#4b4f8c", "#7a5c4a", "#d98cae", "#1f1f1f")  # fmt: skip
"""Of the rows of encoders, in their order."""


def bars(rows: Sequence[Row], path: str | Path) -> Path:
    """All sets side by side, each with a bar for each row of encoders and its spread over seeds."""
    sets, encoders = list(dict.fromkeys(row.set for row in rows)), list(dict.fromkeys(row.encoders for row in rows))
    figure = figure_type()(figsize=(max(5.0, (0.38 * len(encoders) + 0.76) * len(sets) + 1.5), 4.2), layout="constrained")
    axes = figure.add_subplot()
    width = 0.8 / len(encoders)
    for number, name in enumerate(encoders):
        mine = [(sets.index(row.set), row) for row in rows if row.encoders == name]
        places = [place + (number - (len(encoders) - 1) / 2) * width for place, _ in mine]
        heights, spreads = [100 * row.mean for _, row in mine], [100 * row.spread for _, row in mine]
        drawn = axes.bar(places, heights, width * 0.92, yerr=spreads, color=_colour(number), label=name, ecolor=TEXT, capsize=2)
        axes.bar_label(drawn, labels=[f"{height:.1f}" for height in heights], padding=3, fontsize=8, color=TEXT)
    low, high = axis([value for row in rows for value in (row.mean, row.mean + row.spread)])
    axes.set_ylim(100 * low, 100 * high)
    axes.set_xticks(range(len(sets)), [f"{name}\n{_measure(rows, name)}" for name in sets])
    axes.set_ylabel("score on the test data, %" + (f" (axis begins at {100 * low:g})" if low > 0 else ""), color=TEXT)
    return _finish(figure, axes, path)


def curve(rows: Sequence[Row], path: str | Path) -> Path:
    """One set: score against the share of its training data, a line for each row of encoders."""
    figure = figure_type()(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for number, name in enumerate(dict.fromkeys(row.encoders for row in rows)):
        mine = sorted((row for row in rows if row.encoders == name), key=lambda row: row.share)
        shares = [100 * row.share for row in mine]
        means, spreads = [100 * row.mean for row in mine], [100 * row.spread for row in mine]
        axes.errorbar(shares, means, spreads, marker="o", color=_colour(number), label=name, capsize=3, linewidth=1.8)
    ticks = sorted({100 * row.share for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{share:g} %" for share in ticks])
    axes.minorticks_off()
    axes.set_xlabel("share of the training data", color=TEXT)
    axes.set_ylabel(f"{rows[0].set}: {rows[0].measure} on the test data, %", color=TEXT)
    return _finish(figure, axes, path)


def against_cost(rows: Sequence[Row], path: str | Path) -> Path:
    """A panel for each set: score against the time of pre-training, a point for each row of encoders that tells it.

    Fine-tuned rows are hollow. A row without encoders took no time, and is a line across the panel.
    """
    rows = [row for row in rows if row.cost is not None]
    sets, encoders = list(dict.fromkeys(row.set for row in rows)), list(dict.fromkeys(row.encoders for row in rows))
    across = 2 if len(sets) == 4 else min(len(sets), 3)
    down = -(-len(sets) // across)
    figure = figure_type()(figsize=(4.4 * max(across, 1.5), 3.5 * down + 0.8), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten()
    ticks = _ticks([row.cost.seconds for row in rows if row.cost is not None and row.cost.seconds > 0])
    for panel, name in zip(panels, sets, strict=False):
        mine = [row for row in rows if row.set == name]
        for row in mine:
            _point(panel, row, _colour(encoders.index(row.encoders)))
        panel.set_xscale("log")
        panel.set_xlim(min(ticks) / 1.25, max(ticks) * 1.25)
        panel.set_xticks(list(ticks), list(ticks.values()))
        panel.minorticks_off()
        panel.set_title(title_of(name), color=TEXT, loc="left", fontsize=11)
        panel.set_ylabel(f"{mine[0].measure} on the test data, %", color=TEXT)
        panel.set_xlabel("pre-training", color=TEXT)
        plain_axes(panel)
    for panel in panels[len(sets) :]:
        panel.remove()
    marks = {name: mark for panel in panels for mark, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend([*marks.values()], [*marks], loc="outside lower center", ncols=6, frameon=False, fontsize=10, labelcolor=TEXT)
    return _saved(figure, path)


def _point(panel: Any, row: Row, colour: str) -> None:
    assert row.cost is not None
    look: dict[str, Any] = {"color": colour, "label": row.encoders}
    if row.cost.seconds == 0:
        panel.axhline(100 * row.mean, linestyle="--", linewidth=1.4, **look)
        return
    fill = "white" if row.encoders.endswith(f":{TUNED}") else colour
    panel.errorbar(
        row.cost.seconds, 100 * row.mean, 100 * row.spread, linestyle="", marker="o", markerfacecolor=fill, capsize=3, **look
    )


def _ticks(seconds: Sequence[float]) -> dict[float, str]:
    """Round times from below the shortest to above the longest, and how people say them."""
    marks = [number * unit for unit in (1, 60, 3600) for number in (1, 10)] + [86400, 864000, 8640000]
    low = max((mark for mark in marks if mark <= min(seconds)), default=0.1)
    high = min((mark for mark in marks if mark >= max(seconds) and mark > low), default=8.64e7)
    return {mark: duration(mark) for mark in [low, *marks, high] if low <= mark <= high}


def has_costs(rows: Sequence[Row]) -> bool:
    """Whether any row tells what its encoders cost."""
    return any(row.cost is not None and row.cost.seconds > 0 for row in rows)


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _measure(rows: Sequence[Row], name: str) -> str:
    return next(row.measure for row in rows if row.set == name)


def _finish(figure: Any, axes: Any, path: str | Path) -> Path:
    plain_axes(axes)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=10, labelcolor=TEXT)
    return _saved(figure, path)


def _saved(figure: Any, path: str | Path) -> Path:
    path = Path(path)
    with atomic(path) as part:
        figure.savefig(part, format=kind_of(path), dpi=150)
    return path
