"""Comparisons as pictures: a bar for each row of encoders in each set, and score against the share of labelled data, or
against what the encoders cost. A fine-tuned row has the colour of the frozen one, hatched or hollow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import TEXT, axis, figure_type, kind_of, plain_axes
from polyseme.base.files import atomic
from polyseme.base.formatting import format_duration
from polyseme.studies.finetuning import TUNED
from polyseme.studies.sets import title_of
from polyseme.studies.table import Row

COLOURS = ("#a3adb5", "#d08c4f", "#2f6690", "#6a994e", "#8e6c9e", "#b5543a",
           "#3a9a9a", "#c9b037", "#4b4f8c", "#7a5c4a", "#d98cae", "#1f1f1f")  # fmt: skip
"""Of the rows of encoders, in their order, fine-tuned ones not counted."""
WIDEST = 12.0  # inches of bars side by side; more sets than fit are in panels, one below another
BESIDE = 0.012  # of the axis, three points of a printer: nearer bars of spread would cover each other
CROWDED = 0.1  # of the axis: two marks nearer than this have no room for what they say


@dataclass(frozen=True)
class Style:
    """How a row of encoders is drawn."""

    colour: str
    tuned: bool

    @property
    def hatch(self) -> dict[str, Any]:
        """Of its bars."""
        return {"hatch": "////", "edgecolor": "white", "linewidth": 0.0} if self.tuned else {}

    @property
    def fill(self) -> str:
        """Of its points."""
        return "white" if self.tuned else self.colour


def styles(encoders: Sequence[str]) -> dict[str, Style]:
    """How each row is drawn, in the order of the rows.

    >>> {name: style.tuned for name, style in styles(["elmo", "bert", "elmo", "bert:finetune"]).items()}
    {'elmo': False, 'bert': False, 'bert:finetune': True}
    """
    methods = list(dict.fromkeys(name.removesuffix(f":{TUNED}") for name in encoders))
    return {
        name: Style(COLOURS[methods.index(name.removesuffix(f":{TUNED}")) % len(COLOURS)], name.endswith(f":{TUNED}"))
        for name in encoders
    }


def plot_scores(rows: Sequence[Row], path: str | Path) -> Path:
    """All sets side by side, each with a bar for each row of encoders and its spread over seeds.

    Where that would be too wide, some sets are below others, in panels whose axes fit their own scores.
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
    """Sets in their order, at most so many together, and about as many in each part."""
    each = -(-len(sets) // -(-len(sets) // most))
    return [sets[begin : begin + each] for begin in range(0, len(sets), each)]


def _bar_panel(axes: Any, rows: Sequence[Row], sets: Sequence[str], shown: dict[str, Style]) -> float:
    """Draw the bars of some sets; gives where the axis begins, in scores."""
    width = 0.8 / len(shown)
    for number, (name, style) in enumerate(shown.items()):
        mine = [(sets.index(row.set), row) for row in rows if row.encoders == name]
        if not mine:
            continue
        places = [place + (number - (len(shown) - 1) / 2) * width for place, _ in mine]
        heights, stds = [100 * row.mean for _, row in mine], [100 * row.std for _, row in mine]
        drawn = axes.bar(
            places, heights, width * 0.92, yerr=stds, color=style.colour, label=name, ecolor=TEXT, capsize=2, **style.hatch
        )
        axes.bar_label(drawn, labels=[f"{height:.1f}" for height in heights], padding=3, fontsize=8, color=TEXT)
    low, high = axis([value for row in rows for value in (row.mean, row.mean + row.std)])
    axes.set_ylim(100 * low, 100 * high)
    axes.set_xticks(range(len(sets)), [f"{name}\n{_measure(rows, name)}" for name in sets])
    plain_axes(axes)
    return low


def plot_learning_curve(rows: Sequence[Row], path: str | Path) -> Path:
    """One set: score against the share of its training data, a line for each row of encoders."""
    figure = figure_type()(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, style in styles([row.encoders for row in rows]).items():
        mine = sorted((row for row in rows if row.encoders == name), key=lambda row: row.share)
        shares = [100 * row.share for row in mine]
        means, stds = [100 * row.mean for row in mine], [100 * row.std for row in mine]
        line: dict[str, Any] = {"color": style.colour, "linestyle": "--" if style.tuned else "-", "linewidth": 1.8}
        axes.errorbar(shares, means, stds, marker="o", markerfacecolor=style.fill, label=name, capsize=3, **line)
    ticks = sorted({100 * row.share for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{share:g} %" for share in ticks])
    axes.minorticks_off()
    axes.set_xlabel("share of the training data", color=TEXT)
    axes.set_ylabel(f"{rows[0].set}: {rows[0].measure} on the test data, %", color=TEXT)
    plain_axes(axes)
    return _finish(figure, path)


def plot_costs(rows: Sequence[Row], path: str | Path) -> Path:
    """A panel for each set: score against the time of pre-training, a point for each row of encoders that tells it.

    Fine-tuned rows are hollow. Rows of about the same time are side by side. A row without encoders took no time, and is a
    line across the panel.
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


def _cost_panel(panel: Any, rows: Sequence[Row], shown: dict[str, Style], ticks: dict[float, str]) -> None:
    free, timed = ([row for row in rows if (_seconds(row) > 0) == is_so] for is_so in (False, True))
    for row in free:
        panel.axhline(100 * row.mean, linestyle="--", linewidth=1.4, color=shown[row.encoders].colour, label=row.encoders)
    low, high = min(ticks), max(ticks)
    places = _dodge([_seconds(row) for row in timed], BESIDE * math.log(high / low * 1.25**2))
    for row, place in zip(timed, places, strict=True):
        style = shown[row.encoders]
        point: dict[str, Any] = {"marker": "o", "color": style.colour, "markerfacecolor": style.fill, "label": row.encoders}
        panel.errorbar(place, 100 * row.mean, 100 * row.std, linestyle="", capsize=3, **point)
    panel.set_xscale("log")
    panel.set_xlim(
        min([low / 1.25, *(place / 1.1 for place in places)]), max([high * 1.25, *(place * 1.1 for place in places)])
    )
    panel.set_xticks(list(ticks), list(ticks.values()))
    panel.minorticks_off()
    shifted = any(not math.isclose(place, _seconds(row)) for row, place in zip(timed, places, strict=True))
    panel.set_xlabel("pre-training" + (" (about equal times side by side)" if shifted else ""), color=TEXT)


def _dodge(seconds: Sequence[float], gap: float) -> list[float]:
    """Where times are drawn on a log axis, so that none is nearer to another than `gap`.

    About equal ones are side by side around their middle, in the order given; those that these reach join them.

    >>> [round(place, 1) for place in _dodge([90.0, 3.0, 90.0], math.log(1.21))]
    [81.8, 3.0, 99.0]
    """
    logs = [math.log(each) for each in seconds]

    def middle(group: list[int]) -> float:
        return math.fsum(logs[place] for place in group) / len(group)

    groups, at = _about_equal(logs, gap), 0
    while at + 1 < len(groups):
        one, two = groups[at : at + 2]
        if middle(two) - middle(one) < gap * (len(one) + len(two)) / 2:  # they would touch
            groups[at : at + 2] = [one + two]
            at = max(at - 1, 0)  # what is wider now may touch the one before
        else:
            at += 1
    places = {}
    for group in groups:
        first = middle(group) - gap * (len(group) - 1) / 2
        places.update({place: math.exp(first + gap * number) for number, place in enumerate(group)})
    return [places[place] for place in range(len(logs))]


def _about_equal(values: Sequence[float], gap: float) -> list[list[int]]:
    """The places of values in groups by rising value, each in the order given; a group ends before a wider gap."""
    groups: list[list[int]] = []
    order = sorted(range(len(values)), key=lambda place: values[place])
    for before, place in zip([None, *order], order, strict=False):
        if before is None or values[place] - values[before] > gap:
            groups.append([])
        groups[-1].append(place)
    return [sorted(group) for group in groups]


def _ticks(seconds: Sequence[float]) -> dict[float, str]:
    """Round times from below the shortest to above the longest, and how people say them; without those that lack room."""
    below = [10.0**power for power in range(math.floor(math.log10(min(seconds))), 0)]
    marks = below + [number * unit for unit in (1, 60, 3600) for number in (1, 10)] + [86400, 864000, 8640000, 86400000]
    low = max(mark for mark in marks if mark <= min(seconds))
    high = min((mark for mark in marks if mark >= max(seconds) and mark > low), default=marks[-1])
    kept = [high]
    for mark in sorted((mark for mark in marks if low <= mark < high), reverse=True):
        if math.log(kept[-1] / mark) > CROWDED * math.log(high / low) or mark == low:
            kept.append(mark)
    return {mark: format_duration(mark) if mark >= 1 else f"{mark:g} s" for mark in reversed(kept)}


def _seconds(row: Row) -> float:
    return 0.0 if row.cost is None else row.cost.seconds


def has_costs(rows: Sequence[Row]) -> bool:
    """Whether any row tells what its encoders cost."""
    return any(_seconds(row) > 0 for row in rows)


def _measure(rows: Sequence[Row], name: str) -> str:
    return next(row.measure for row in rows if row.set == name)


def _finish(figure: Any, path: str | Path, *, columns: int = 4) -> Path:
    """With the names of all rows below, the file."""
    marks = {name: mark for axes in figure.axes for mark, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(
        [*marks.values()], [*marks], loc="outside lower center", ncols=columns, frameon=False, fontsize=10, labelcolor=TEXT
    )
    path = Path(path)
    with atomic(path) as part:
        figure.savefig(part, format=kind_of(path), dpi=150)
    return path
