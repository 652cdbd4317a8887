"""A folder that has a run already, before anything is computed: the result of one that is finished, or what has changed.

`polyseme.training.resume` compares the settings of all runs; here changes have the names of the options of a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.config import Config
from polyseme.base.errors import PolysemeError, arg
from polyseme.base.files import read_json
from polyseme.base.options import options_of
from polyseme.training.checkpoint import CheckpointManager, stored_settings
from polyseme.training.resume import differences, plain_settings
from polyseme.training.trainer import TrainOutput

_DERIVED = ("config.steps", "config.eval_every", "config.log_every", "settings.fitting.min_steps")
"""Settings that follow from others, and from the data."""
_TITLES = {"settings.data": "the training data", "settings.dev": "the dev data", "settings.vocabulary": "the words or labels"}


def finished_output(
    out: Path, settings: Mapping[str, Any], configs: Mapping[str, Config], result: str, *, accept_changes: bool
) -> TrainOutput | None:
    """Return how a finished run with the same settings ended; None: the folder has none, or one to be resumed.

    A finished run with other settings is an error, which names the options; so are other settings of one to be resumed.
    """
    progress = _progress(out)
    old = stored_settings(out, settings)
    if not old or accept_changes:
        return None
    changed = differences(old, plain_settings(settings))
    is_finished = progress.get("ended") is not None and (out / result).is_file()
    if changed:
        named = _by_option(changed, configs)
        if not is_finished or not named:
            return None  # resuming refuses it
        listed = "; ".join(f"{name}: {how}" if how else name for name, how in named.items())
        what = f"{out} has a finished run with other settings ({listed})"
        raise PolysemeError(f"{what}: choose another folder for a new run, or give the old settings to see its result")
    if not is_finished:
        return None
    names = ("steps", "words", "seconds", "best", "best_step", "scores", "ended")
    values = {name: progress.get("step" if name == "steps" else name) for name in names}
    return TrainOutput(out=out, **values)  # type: ignore[arg-type]


def _by_option(changed: Mapping[str, str], configs: Mapping[str, Config]) -> dict[str, str]:
    """What has changed, by the names of options; what follows from other changes is left out."""
    paths = {path: option.name for option in options_of(configs).values() for path in option.paths}
    named: dict[str, str] = {}
    for name, how in changed.items():
        if name in _DERIVED and len(changed) > 1:
            continue
        path = name.removeprefix("settings.").replace("config.optim.", "fit.optim.").replace("fitting.", "fit.", 1)
        if name in _TITLES:
            named[f"{_TITLES[name]} changed"] = ""
        elif name in ("settings.encoders", "settings.splitter"):
            named[f"{arg(name.removeprefix('settings.').removesuffix('s'))} changed"] = ""
        else:
            named[arg(paths.get(path, path.rpartition(".")[2]))] = how
    return named


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
