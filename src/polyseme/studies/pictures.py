"""Comparisons as pictures: a bar for each row of encoders in each set, and score against the share of labelled data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import TEXT, axis, figure_type, kind_of, plain_axes
from polyseme.base.files import atomic
from polyseme.studies.table import Row

COLOURS = ("#a3adb5", "#d08c4f", "#2f6690", "#6a994e", "#8e6c9e", "#b5543a")
"""Of the rows of encoders, in their order."""


def bars(rows: Sequence[Row], path: str | Path) -> Path:
    """All sets side by side, each with a bar for each row of encoders and its spread over seeds."""
    sets, encoders = list(dict.fromkeys(row.set for row in rows)), list(dict.fromkeys(row.encoders for row in rows))
    figure = figure_type()(figsize=(max(5.0, 1.9 * len(sets) + 1.5), 4.2), layout="constrained")
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


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _measure(rows: Sequence[Row], name: str) -> str:
    return next(row.measure for row in rows if row.set == name)


def _finish(figure: Any, axes: Any, path: str | Path) -> Path:
    plain_axes(axes)
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=10, labelcolor=TEXT)
    path = Path(path)
    with atomic(path) as part:
        figure.savefig(part, format=kind_of(path), dpi=150)
    return path
