"""Bar charts of probe results: one bar per layer, baselines as dashed lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.base.files import atomic

if TYPE_CHECKING:
    from polyseme.analysis.probe_result import ProbeResult

KINDS = ("png", "svg", "pdf")
BAR, BEST, LINE, TEXT = "#9fb8cc", "#2f6690", "#b5543a", "#333333"
BASELINES: tuple[tuple[str, Any], ...] = (
    (LINE, "--"),
    ("#1f1f1f", ":"),
    ("#8a7420", "-."),
    ("#8e6c9e", (0, (8, 3, 2, 3, 2, 3))),
)
"""Colour and dashes of each baseline: told apart without colours, too."""

_LABEL = 14  # letters on a line below a bar


def check_plot(path: str | Path) -> None:
    """Raise if a plot could not be written, before hours of work."""
    kind_of(path)
    figure_type()


def plot(result: ProbeResult, path: str | Path) -> Path:
    """Draw the main measure of a result into a png, svg or pdf file, by its suffix."""
    path, kind, measure = Path(path), kind_of(path), result.measures[0]
    names = list(result.rows)
    values = [result.rows[name][measure] for name in names]
    lines = {name: row[measure] for name, row in result.baselines.items()}
    low, high = axis([value for value in [*values, *lines.values()] if not math.isnan(value)])
    figure = figure_type()(figsize=(max(5.0, 1.1 * len(names) + 1.6), 4.2), layout="constrained")
    axes = figure.add_subplot()
    colours = [BEST if name == result.best else BAR for name in names]
    labels = [textwrap.fill(name, _LABEL) for name in names]
    bars = axes.bar(labels, [max(low, 0.0) if math.isnan(value) else value for value in values], color=colours, width=0.65)
    axes.bar_label(bars, labels=["none" if math.isnan(v) else f"{v:.3f}" for v in values], padding=3, color=TEXT, fontsize=10)
    draw_baselines(axes, lines, digits=3)
    axes.set_ylim(low, high)
    axes.set_ylabel(measure if low <= 0 else f"{measure} (axis starts at {low:g})", color=TEXT)
    axes.set_title(result.title, color=TEXT, loc="left", fontsize=12)
    if lines:
        figure.legend(loc="outside lower left", frameon=False, handlelength=3.5, fontsize=10, labelcolor=TEXT)
    plain_axes(axes)
    with atomic(path) as part:
        figure.savefig(part, format=kind, dpi=150)
    return path


def draw_baselines(axes: Any, values: Mapping[str, float], *, digits: int) -> None:
    """Draw each baseline as a horizontal line with a style of its own, and its value in the legend."""
    for number, (name, value) in enumerate(values.items()):
        colour, dashes = BASELINES[number % len(BASELINES)]
        label = f"{name}: {value:.{digits}f}"
        axes.axhline(value, color=colour, linestyle=dashes, linewidth=1.6, label=label, zorder=3)


def axis(values: list[float]) -> tuple[float, float]:
    """Return the range of the axis: it includes zero, unless all values are high and would look the same.

    >>> axis([0.2, 0.7]), axis([0.91, 0.95]), axis([-0.12, 0.3])
    ((0.0, 0.784), (0.85, 0.962), (-0.2, 0.36))
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    extent = max(high - low, 0.02)
    high = max(high, 0.0)
    if low < 0:
        begin = math.floor((low - 0.15 * extent) * 10) / 10
    elif low > 0.5 and low > 3 * extent:
        begin = math.floor((low - extent) * 20) / 20
    else:
        begin = 0.0
    return begin, round(high + 0.12 * max(high - begin, 0.02), 4)


def plain_axes(axes: Any) -> None:
    """Draw light lines and no frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(colors=TEXT, labelsize=10)
    axes.yaxis.grid(True, color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)


def kind_of(path: str | Path) -> str:
    """Return the file format that a suffix selects."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise UsageError(f"cannot draw {path}: the suffix selects the format; allowed: .{', .'.join(KINDS)}")
    return kind


def figure_type() -> Any:
    """Return a figure class that needs no display: not pyplot, which would open one and has global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing needs matplotlib", "plots") from error
    return Figure
