"""The runs of a folder (`--runs`): their curves, read from `run/log.jsonl` whenever the page asks, also while they train."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from polyseme.analysis.training_curve import LOG, points
from polyseme.base.errors import PolysemeError
from polyseme.tasks.finished_run import has_checkpoint, has_ended
from polyseme.tasks.fit import RESULT

MAX_RUNS, MAX_POINTS = 24, 500
LIVE_SECONDS = 90.0
"""A run is live if its log changed within this many seconds."""
_NOT_SCORES = ("step", "kind", "seconds", "epoch", "best", "words_per_second", "learning_rate")


def runs_in(folder: str | None) -> dict[str, Any]:
    """The newest runs of a folder and of its subfolders, by name."""
    if folder is None:
        return {"folder": None, "runs": []}
    root = Path(folder).expanduser().resolve()
    if not root.is_dir():
        raise PolysemeError("the folder of --runs is not there: start the service with another")
    logs = [path for path in islice(root.rglob(LOG), 10_000) if path.is_file()]
    newest = sorted(logs, key=lambda path: -path.stat().st_mtime)[:MAX_RUNS]
    return {
        "folder": root.name or str(root),
        "runs": sorted((_run(root, path) for path in newest), key=lambda run: run["name"]),
    }


def _run(root: Path, log: Path) -> dict[str, Any]:
    lines = list(_lines(log))
    name = log.parents[1].relative_to(root).as_posix()
    score, state = _score(lines), _state(log)
    dev = points(lines, "dev", (score,)) if score else []
    best = max((line["step"] for line in lines if line.get("best") is True), default=None)
    return {
        "name": root.name if name == "." else name,
        "live": state == "training",
        "state": state,
        "step": max((int(line["step"]) for line in lines if isinstance(line.get("step"), int)), default=0),
        "loss": {"name": "loss", "points": _thinned(points(lines, "train", ("loss", "sampled_loss")))},
        "dev": {"name": score, "points": _thinned(dev), "best": next((each for each in dev if each[0] == best), None)},
        "speed": {"name": "words_per_second", "points": _thinned(points(lines, "train", ("words_per_second",)))},
    }


def _state(log: Path) -> str:
    """Whether a run is training, finished, or stopped before its end."""
    folder = log.parents[1]
    if has_ended(folder) or ((folder / RESULT).is_file() and not has_checkpoint(folder)):  # a study keeps no checkpoint
        return "finished"
    return "training" if time.time() - log.stat().st_mtime < LIVE_SECONDS else "stopped"


def _lines(log: Path) -> list[dict[str, Any]]:
    """Lines of a log; what is half-written or broken is left out."""
    found = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("step"), int):
            found.append({name: each for name, each in value.items() if name in ("step", "kind", "best") or _is_number(each)})
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _score(lines: Sequence[dict[str, Any]]) -> str | None:
    """Which number of an evaluation is shown: perplexity, or else the first that is a score."""
    names = dict.fromkeys(name for line in lines if line.get("kind") == "dev" for name in line if name not in _NOT_SCORES)
    wanted = (
        *("perplexity", "word_perplexity", "piece_perplexity", "masked_perplexity"),
        *("f1", "accuracy", "spearman", "loss"),
    )
    return next((name for name in (*wanted, *names) if name in names), None)


def _thinned(values: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    every = max(math.ceil(len(values) / MAX_POINTS), 1)
    return [*values[:-1:every], *values[-1:]]
