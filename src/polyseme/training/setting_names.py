"""What has changed between two runs, by the names that users give: `--learning-rate`, and not `config.optim.learning_rate`.

The settings of a run are nested; an option has the name of its field, unless the config declares another
(`polyseme.base.options`). What follows from other settings (steps from epochs and data) is left out beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.base.config import Config
from polyseme.base.errors import arg
from polyseme.base.options import options_of

_DERIVED = (
    *("config.steps", "config.eval_every", "config.log_every"),
    *("settings.fitting.min_steps", "settings.task.wide_features"),
)
_TITLES = {
    "settings.data": "the training data",
    "settings.dev": "the dev data",
    "settings.model": "the model",
    "settings.vocabulary": "the words or labels",
}
_ARGUMENTS = {
    "settings.encoders": "encoder",
    "settings.splitter": "splitter",
    "settings.vectors": "vectors",
    "corpus": "corpus",
}


def option_names(settings: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Return the options of the configs among nested settings, by the dotted names of the fields that they set."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        path = f"{above}{name}"
        if isinstance(value, Config):
            options = sorted(options_of({path: value}).values(), key=lambda option: -len(option.paths))  # its own name is last
            found |= {field: option.name for option in options for field in option.paths}
        elif isinstance(value, Mapping):
            found |= option_names(value, f"{path}.")
    return found


def listed_changes(changed: Mapping[str, str], names: Mapping[str, str] | None = None) -> str:
    """What has changed (`polyseme.training.resume.differences`), in words; `names`: those of `option_names`.

    >>> listed_changes({"config.epochs": "2 in the run, 3 now", "config.steps": "20 in the run, 30 now"})
    'epochs: 2 in the run, 3 now'
    """
    own = {name: how for name, how in changed.items() if name not in _DERIVED} or changed
    named: dict[str, None] = {}
    for name, how in own.items():
        if name in _TITLES or name in _ARGUMENTS:
            named[f"{_TITLES.get(name) or arg(_ARGUMENTS[name])} changed"] = None
        else:
            named[f"{arg((names or {}).get(name, name.rpartition('.')[2]))}: {how}"] = None
    return "; ".join(named)
