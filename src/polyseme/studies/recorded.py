"""The settings of a run that is resumed: what the user does not give is as it was when the run began, whatever the defaults are
today."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.config import Config, ConfigError
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.registry import default_configs
from polyseme.tasks.restarts import Attempts
from polyseme.training.checkpoint import stored_settings
from polyseme.training.config import TrainConfig
from polyseme.training.resume import ADDED, ConfigValues

_TASK = "settings.task."


def recorded_configs(task: str, out: Path) -> dict[str, Config] | None:
    """Return the configs with which the run in a folder began, to use as defaults; None: there is no run of this task."""
    defaults = default_configs(task)
    like = {"config": TrainConfig(steps=1), "settings": {"task": defaults["task"], "fitting": ConfigValues(FitConfig, {})}}
    record = stored_settings(out, like)
    own = record.get("settings", {})
    if "task" not in own or "fitting" not in own:
        return None
    try:
        optim = _optim(record["config"]["optim"], Attempts.read(out / "run"))
        return {
            "task": type(defaults["task"]).from_dict(_with_added(own["task"], defaults["task"])),
            "fit": FitConfig.from_dict({**own["fitting"], "optim": optim}),
        }
    except ConfigError:  # of another task: the comparison with its settings says so
        return None


def recorded_dev_file(out: Path) -> str | None:
    """Return the file of the dev data with which the run in a folder was trained; None: none was given, or it is not known."""
    found = stored_settings(out, {}).get("settings", {}).get("dev_file")
    return found if isinstance(found, str) else None


def _with_added(values: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """The values of a task's config, with those fields that the version which wrote them did not have."""
    fields = {field.name for field in dataclasses.fields(config)}
    added = {path.removeprefix(_TASK): value for path, value in ADDED.items() if path.startswith(_TASK)}
    return {**{name: value for name, value in added.items() if name in fields}, **values}


def _optim(values: Mapping[str, Any], attempts: Attempts) -> dict[str, Any]:
    """The settings of the optimizer before restarts made the learning rate smaller."""
    return {**values, "learning_rate": values["learning_rate"] / attempts.learning_rate_factor}
