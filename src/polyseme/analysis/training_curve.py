"""The curve of a run as a picture: training loss above, dev score below, over steps; baselines as lines of different dashes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.analysis.plots import BEST, LINE, TEXT, draw_baselines, figure_type, kind_of, plain_axes
from polyseme.base.errors import FormatError
from polyseme.base.files import atomic, wrap_os_errors

LOG = "run/log.jsonl"
Point = tuple[int, float]


def plot_run(
    folder: str | Path, path: str | Path, *, score: str | None = None, baselines: Mapping[str, float] | None = None
) -> Path | None:
    """Draw the run in a folder into a png, svg or pdf file; return None if nothing was logged yet.

    `score`: which number of an evaluation to draw; default: perplexity, or the loss. `baselines`: scores on the dev data.
    """
    lines, path = read_log(Path(folder)), Path(path)
    loss = points(lines, "train", ("loss", "sampled_loss"))
    names = (score,) if score is not None else ("perplexity", "loss")
    dev = points(lines, "dev", names)
    if not loss and not dev:
        return None
    figure = figure_type()(figsize=(6.4, 5.2), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True)
    _curve(upper, loss, "training loss")
    _curve(lower, dev, f"dev {next((name for name in names if any(name in line for line in lines)), '')}".replace("_", " "))
    _mark_best(lower, lines, dev)
    draw_baselines(lower, baselines or {}, digits=4)
    if lower.get_legend_handles_labels()[1]:
        figure.legend(loc="outside lower left", frameon=False, handlelength=3.5, fontsize=10, labelcolor=TEXT)
    lower.set_xlabel("steps", color=TEXT)
    figure.align_ylabels()
    with atomic(path) as part:
        figure.savefig(part, format=kind_of(path), dpi=150)
    return path


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of a run's log; none if there is no log."""
    file = folder / LOG
    if not file.exists():
        return []
    with wrap_os_errors(file, "read"):
        text = file.read_text(encoding="utf-8")
    try:
        return [json.loads(line) for line in text.splitlines()]
    except ValueError as error:
        raise FormatError(file, f"is not JSON lines ({error})") from error


def points(lines: Sequence[Mapping[str, Any]], kind: str, names: Sequence[str]) -> list[Point]:
    """Return the steps and values of the first of some numbers that a kind of lines has.

    >>> points([{"step": 2, "kind": "dev", "f1": 0.5}, {"step": 2, "kind": "train", "loss": 1.0}], "dev", ["f1"])
    [(2, 0.5)]
    """
    mine = [line for line in lines if line.get("kind") == kind]
    name = next((name for name in names if any(name in line for line in mine)), "")
    found = [(int(line["step"]), float(line[name])) for line in mine if name in line]
    return [(step, value) for step, value in found if math.isfinite(value)]


def _curve(axes: Any, values: Sequence[Point], label: str) -> None:
    axes.plot([step for step, _ in values], [value for _, value in values], color=BEST, linewidth=1.6, marker="o", markersize=3)
    axes.set_ylabel(label, color=TEXT)
    plain_axes(axes)


def _mark_best(axes: Any, lines: Sequence[Mapping[str, Any]], values: Sequence[Point]) -> None:
    """Mark the evaluation whose network is kept."""
    best = max((int(line["step"]) for line in lines if line.get("best") is True), default=None)
    for step, value in values:
        if step == best:
            axes.plot([step], [value], color=LINE, marker="o", markersize=7, linestyle="", label=f"best: {value:.4f}")
