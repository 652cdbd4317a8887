"""A folder that has a run already, before anything is computed: the result of one that is finished, or what has changed.

`polyseme.training.resume` compares the settings of runs that are resumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.files import read_json
from polyseme.training.checkpoint import CheckpointManager, stored_settings
from polyseme.training.resume import check_resume_settings, differences, plain_settings
from polyseme.training.setting_names import listed_changes, option_names
from polyseme.training.trainer import TrainOutput

_BUDGET = {"config.steps", "settings.fitting.epochs"}
"""Settings that make a run longer."""


def finished_output(out: Path, settings: Mapping[str, Any], result: str, *, accept_changes: bool) -> TrainOutput | None:
    """Return how a finished run with the same settings ended; None: the folder has none, or one to be resumed.

    A run with other settings is an error, which names the options.
    """
    progress = _progress(out)
    old, now, names = stored_settings(out, settings), plain_settings(settings), option_names(settings)
    if not old or accept_changes:
        return None
    is_finished = progress.get("ended") is not None and (out / result).is_file()
    if not is_finished:
        check_resume_settings(old, now, accept_changes=False, names=names)  # resuming does so too, after hours of layers
        return None
    if changed := differences(old, now):
        what = f"{out} has a finished run with other settings ({listed_changes(changed, names)})"
        more = f", or {arg('accept_changes', True)} to train on with a larger budget" if _BUDGET & changed.keys() else ""
        raise PolysemeError(f"{what}: choose another folder for a new run, give the old settings to see its result{more}")
    fields = ("steps", "words", "seconds", "best", "best_step", "scores", "ended")
    values = {name: progress.get("step" if name == "steps" else name) for name in fields}
    return TrainOutput(out=out, **values)  # type: ignore[arg-type]


def has_checkpoint(folder: Path) -> bool:
    return bool(_progress(folder))


def has_ended(folder: Path) -> bool:
    """Whether the run in a folder, of a task or of pre-training, has come to its end."""
    return _progress(folder).get("ended") is not None


def is_unfinished(folder: Path) -> bool:
    """Whether the run of a trained task was interrupted, or is still training; a copy without the run's files is not."""
    ended = _progress(folder)
    return bool(ended) and ended.get("ended") is None


def _progress(out: Path) -> dict[str, Any]:
    """The counters of the run in a folder at its last checkpoint; empty where they cannot be read."""
    manager = CheckpointManager(out / "run")
    for step in manager.steps()[:1]:
        try:
            head = read_json(manager.folder / f"checkpoint-{step:08d}.json")
        except PolysemeError:
            return {}
        return dict(head.get("values", {}).get("progress", {})) if head.get("polyseme_checkpoint", 1) != 1 else {}
    return {}
