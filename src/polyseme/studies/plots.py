"""Plots of comparisons: bars of scores, learning curves over fractions of the data, and scores against costs.

A fine-tuned row has the colour of the frozen one, hatched or hollow.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import BASELINES, TEXT, axis, figure_type, kind_of, plain_axes
from polyseme.base.display import format_duration
from polyseme.base.files import atomic
from polyseme.studies.finetuning import without_mode
from polyseme.studies.sets import title_of
from polyseme.studies.table import ComparisonRow

COLOURS = ("#a3adb5", "#d08c4f", "#2f6690", "#6a994e", "#8e6c9e", "#b5543a",
           "#3a9a9a", "#c9b037", "#4b4f8c", "#7a5c4a", "#d98cae", "#1f1f1f")  # fmt: skip
"""Of the rows of encoders in their order, without fine-tuned ones."""
WIDEST = 12.0  # inches; more data sets than fit get further panels below
BESIDE = 0.012  # of the axis, about three printer's points: nearer error bars would overlap
CROWDED = 0.1  # of the axis: the labels of two nearer ticks would overlap


@dataclass(frozen=True)
class Style:
    """How a row of encoders is drawn."""

    colour: str
    tuned: bool

    @property
    def hatch(self) -> dict[str, Any]:
        return {"hatch": "////", "edgecolor": "white", "linewidth": 0.0} if self.tuned else {}

    @property
    def fill(self) -> str:
        return "white" if self.tuned else self.colour


def styles(encoders: Sequence[str]) -> dict[str, Style]:
    """Return how each row is drawn, in the order of the rows.

    >>> {name: style.tuned for name, style in styles(["elmo", "bert", "elmo", "bert:finetune"]).items()}
    {'elmo': False, 'bert': False, 'bert:finetune': True}
    """
    methods = list(dict.fromkeys(without_mode(name) for name in encoders))
    return {
        name: Style(COLOURS[methods.index(without_mode(name)) % len(COLOURS)], name != without_mode(name)) for name in encoders
    }


def plot_scores(rows: Sequence[ComparisonRow], path: str | Path) -> Path:
    """Plot a bar for each row of encoders, by data set, with the standard deviation over seeds.

    Several panels are used if that is too wide; the axis of each fits its own scores.
    """
    sets, shown = list(dict.fromkeys(row.set for row in rows)), styles([row.encoders for row in rows])
    wide = 0.38 * len(shown) + 0.76  # inches of a set
    parts = _parts(sets, max(1, int((WIDEST - 1.5) / wide)))
    across, height = len(parts[0]), 4.2 if len(parts) == 1 else 2.6 * len(parts) + 1.0
    between = " " if len(parts) == 1 else "\n"
    figure = figure_type()(figsize=(max(5.0, wide * across + 1.5), height), layout="constrained")
    for panel, some in zip(figure.subplots(len(parts), squeeze=False).flatten(), parts, strict=True):
        low = _bar_panel(panel, [row for row in rows if row.set in some], some, shown)
        begin = f"{between}(axis begins at {100 * low:g})" if low > 0 else ""
        panel.set_ylabel(f"score on the test data, %{begin}", color=TEXT)
        if len(parts) > 1:
            panel.set_xlim(-0.5, across - 0.5)  # so that all bars are equally wide
    return _finish(figure, path)


def _parts(sets: Sequence[str], most: int) -> list[Sequence[str]]:
    """Divide the data sets into parts of about equal size, at most `most` each."""
    each = -(-len(sets) // -(-len(sets) // most))
    return [sets[begin : begin + each] for begin in range(0, len(sets), each)]


def _bar_panel(axes: Any, rows: Sequence[ComparisonRow], sets: Sequence[str], shown: dict[str, Style]) -> float:
    """Draw the bars of some data sets; return where the axis begins."""
    width = 0.8 / len(shown)
    for number, (name, style) in enumerate(shown.items()):
        mine = [(sets.index(row.set), row) for row in rows if row.encoders == name]
        if not mine:
            continue
        positions = [position + (number - (len(shown) - 1) / 2) * width for position, _ in mine]
        heights, stds = [100 * row.mean for _, row in mine], [100 * _spread(row) for _, row in mine]
        drawn = axes.bar(
            positions, heights, width * 0.92, yerr=stds, color=style.colour, label=name, ecolor=TEXT, capsize=2, **style.hatch
        )
        axes.bar_label(drawn, labels=[f"{height:.1f}" for height in heights], padding=3, fontsize=8, color=TEXT)
    low, high = axis([value for row in rows for value in (row.mean, row.mean + _spread(row))])
    axes.set_ylim(100 * low, 100 * high)
    axes.set_xticks(range(len(sets)), [f"{name}\n{_measure(rows, name)}" for name in sets])
    plain_axes(axes)
    return low


def _spread(row: ComparisonRow) -> float:
    """The length of a bar's error bar: it has none with a single seed."""
    return 0.0 if math.isnan(row.std) else row.std


def plot_learning_curve(rows: Sequence[ComparisonRow], path: str | Path) -> Path:
    """Plot scores on one data set against the fraction of its training data, a line for each row of encoders."""
    figure = figure_type()(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, style in styles([row.encoders for row in rows]).items():
        mine = sorted((row for row in rows if row.encoders == name), key=lambda row: row.train_fraction)
        shares = [100 * row.train_fraction for row in mine]
        means, stds = [100 * row.mean for row in mine], [100 * row.std for row in mine]
        line: dict[str, Any] = {"color": style.colour, "linestyle": "--" if style.tuned else "-", "linewidth": 1.8}
        axes.errorbar(shares, means, stds, marker="o", markerfacecolor=style.fill, label=name, capsize=3, **line)
    ticks = sorted({100 * row.train_fraction for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{share:g} %" for share in ticks])
    axes.minorticks_off()
    axes.set_xlabel("fraction of the training data", color=TEXT)
    axes.set_ylabel(f"{rows[0].set}: {rows[0].measure} on the test data, %", color=TEXT)
    plain_axes(axes)
    return _finish(figure, path)


def plot_costs(rows: Sequence[ComparisonRow], path: str | Path) -> Path:
    """Plot scores against pre-training time, a panel for each data set and a point for each row of encoders.

    Fine-tuned rows are hollow. Points of about equal time are drawn beside each other. A row without encoders took no time and
    is a horizontal line.
    """
    rows = [row for row in rows if row.cost is not None]
    sets, shown = list(dict.fromkeys(row.set for row in rows)), styles([row.encoders for row in rows])
    across = 2 if len(sets) == 4 else min(len(sets), 3)
    down = -(-len(sets) // across)
    figure = figure_type()(figsize=(4.4 * max(across, 1.5), 3.5 * down + 0.8), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).flatten()
    ticks = _ticks([seconds for row in rows if (seconds := _seconds(row)) > 0])
    for panel, name in zip(panels, sets, strict=False):
        mine = [row for row in rows if row.set == name]
        _cost_panel(panel, mine, shown, ticks)
        panel.set_title(title_of(name), color=TEXT, loc="left", fontsize=11)
        panel.set_ylabel(f"{mine[0].measure} on the test data, %", color=TEXT)
        plain_axes(panel)
    for panel in panels[len(sets) :]:
        panel.remove()
    return _finish(figure, path, columns=6)


def _cost_panel(panel: Any, rows: Sequence[ComparisonRow], shown: dict[str, Style], ticks: dict[float, str]) -> None:
    free, timed = ([row for row in rows if (_seconds(row) > 0) == is_so] for is_so in (False, True))
    for (_, dashes), row in zip(itertools.cycle(BASELINES), free, strict=False):
        panel.axhline(100 * row.mean, linestyle=dashes, linewidth=1.4, color=shown[row.encoders].colour, label=row.encoders)
    low, high = min(ticks), max(ticks)
    positions = _dodge([_seconds(row) for row in timed], BESIDE * math.log(high / low * 1.25**2))
    for row, position in zip(timed, positions, strict=True):
        style = shown[row.encoders]
        point: dict[str, Any] = {"marker": "o", "color": style.colour, "markerfacecolor": style.fill, "label": row.encoders}
        panel.errorbar(position, 100 * row.mean, 100 * row.std, linestyle="", capsize=3, **point)
    panel.set_xscale("log")
    panel.set_xlim(
        min([low / 1.25, *(position / 1.1 for position in positions)]),
        max([high * 1.25, *(position * 1.1 for position in positions)]),
    )
    panel.set_xticks(list(ticks), list(ticks.values()))
    panel.minorticks_off()
    shifted = any(not math.isclose(position, _seconds(row)) for row, position in zip(timed, positions, strict=True))
    panel.set_xlabel("pre-training" + (" (about equal times side by side)" if shifted else ""), color=TEXT)


def _dodge(seconds: Sequence[float], gap: float) -> list[float]:
    """Return where to draw times on a log axis so that no two are nearer than `gap`.

    About equal times are spread around their middle, in the given order; those that these reach join them.

    >>> [round(position, 1) for position in _dodge([90.0, 3.0, 90.0], math.log(1.21))]
    [81.8, 3.0, 99.0]
    """
    logs = [math.log(each) for each in seconds]

    def middle(group: list[int]) -> float:
        return math.fsum(logs[position] for position in group) / len(group)

    groups, at = _about_equal(logs, gap), 0
    while at + 1 < len(groups):
        one, two = groups[at : at + 2]
        if middle(two) - middle(one) < gap * (len(one) + len(two)) / 2:  # they would touch
            groups[at : at + 2] = [one + two]
            at = max(at - 1, 0)  # the wider group may touch the one before
        else:
            at += 1
    positions = {}
    for group in groups:
        first = middle(group) - gap * (len(group) - 1) / 2
        positions.update({position: math.exp(first + gap * number) for number, position in enumerate(group)})
    return [positions[position] for position in range(len(logs))]


def _about_equal(values: Sequence[float], gap: float) -> list[list[int]]:
    """Group the indexes of values by rising value, each group in the given order; a wider gap begins a new group."""
    groups: list[list[int]] = []
    order = sorted(range(len(values)), key=lambda position: values[position])
    for before, position in zip([None, *order], order, strict=False):
        if before is None or values[position] - values[before] > gap:
            groups.append([])
        groups[-1].append(position)
    return [sorted(group) for group in groups]


def _ticks(seconds: Sequence[float]) -> dict[float, str]:
    """Return round times from below the shortest to above the longest with their labels, without those that overlap."""
    below = [10.0**power for power in range(math.floor(math.log10(min(seconds))), 0)]
    marks = below + [number * unit for unit in (1, 60, 3600) for number in (1, 10)] + [86400, 864000, 8640000, 86400000]
    low = max(mark for mark in marks if mark <= min(seconds))
    high = min((mark for mark in marks if mark >= max(seconds) and mark > low), default=marks[-1])
    kept = [high]
    for mark in sorted((mark for mark in marks if low <= mark < high), reverse=True):
        if math.log(kept[-1] / mark) > CROWDED * math.log(high / low) or mark == low:
            kept.append(mark)
    return {mark: format_duration(mark) if mark >= 1 else f"{mark:g} s" for mark in reversed(kept)}


def _seconds(row: ComparisonRow) -> float:
    return 0.0 if row.cost is None else row.cost.seconds


def has_costs(rows: Sequence[ComparisonRow]) -> bool:
    """Whether the cost of any row is known."""
    return any(_seconds(row) > 0 for row in rows)


def _measure(rows: Sequence[ComparisonRow], name: str) -> str:
    return next(row.measure for row in rows if row.set == name)


def _finish(figure: Any, path: str | Path, *, columns: int = 4) -> Path:
    """Add the legend, in as many columns as fit, and write the file."""
    marks = {name: mark for axes in figure.axes for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    style = {"loc": "outside lower center", "frameon": False, "fontsize": 10, "labelcolor": TEXT}
    legend = figure.legend([*marks.values()], [*marks], ncols=columns, **style)
    while columns > 1 and legend.get_window_extent().width > figure.bbox.width:
        legend.remove()
        columns -= 1
        legend = figure.legend([*marks.values()], [*marks], ncols=columns, **style)
    path = Path(path)
    with atomic(path) as part:
        figure.savefig(part, format=kind_of(path), dpi=150)
    return path
