"""Whether a run may be resumed: its settings then and now, compared by name.

Settings are nested JSON values. Those of runs that were written in format 1 are translated first, config by config, which is
why `Trainer.fit` takes configs among its settings and not their plain values.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import Any

from polyseme.base import format1
from polyseme.base.config import Config, hints_of
from polyseme.base.errors import PolysemeError, arg
from polyseme.training.setting_names import listed_changes

MAY_CHANGE = {
    *("config.log_every", "config.checkpoint_every", "config.checkpoint_seconds", "run.device"),
    *("settings.task.strict", "settings.task.guessed", "settings.dev_file"),  # the examples themselves are compared
}
"""Settings that may differ, because the weights do not depend on them (on another device, but for rounding)."""
ADDED = {
    **{"settings.task.wide": False, "settings.task.wide_features": 0, "settings.task.word_layer": 0},
    "settings.task.wide_dropout": 0.0,
    "settings.task.network": "lstm",
    "settings.pretraining.backward": False,
    **{"settings.pretraining.document_fraction": 0.0, "settings.adaptation.document_fraction": 0.0},
}
"""Settings that the runs of earlier versions do not have, and how those versions trained."""
VOCABULARY = "settings.vocabulary"
"""What the rows of a run's weight tables stand for: words, labels, subwords."""
DEV_DATA = "settings.dev"
"""The held-out data: scores on other data cannot be compared."""
_HASH = re.compile(r"[0-9a-f]{64}")
_KINDS = ("task", "adaptation", "word2vec", "fasttext", "glove")
"""Settings whose names say what a run trains."""


class ConfigValues(dict[str, Any]):
    """Values of a config class, perhaps without some fields or with others; the class finds their names of format 1."""

    def __init__(self, config: type[Config], values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.config = config


def plain_settings(settings: Any) -> Any:
    """Settings as JSON values: configs become dictionaries."""
    if isinstance(settings, Config):
        return plain_settings(settings.to_dict())
    if isinstance(settings, Mapping):
        return {name: plain_settings(value) for name, value in settings.items()}
    return [plain_settings(value) for value in settings] if isinstance(settings, list | tuple) else settings


def translate_settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run of format 1 under their names of format 2; `new` says by its configs which names they have."""
    translated = {}
    for name, value in format1.translate("RunSettings", old).items():
        now = new.get(name)
        if isinstance(now, ConfigValues | Config):
            translated[name] = _translate_config(now.config if isinstance(now, ConfigValues) else type(now), value)
        elif name in ("run", "settings") and isinstance(now, Mapping):
            translated[name] = translate_settings(value, now)
        else:
            translated[name] = value
    return translated


def _translate_config(config: type[Config], old: Any) -> Any:
    if not isinstance(old, Mapping):
        return old
    values, hints = format1.translate(config.__name__, old), hints_of(config)
    for name, value in values.items():
        for hint in (hints.get(name), *typing.get_args(hints.get(name))):  # the config itself, or an optional one
            if isinstance(hint, type) and issubclass(hint, Config):
                values[name] = _translate_config(hint, value)
    return values


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """What differs between two nested settings, by dotted name, without those of `MAY_CHANGE`.

    >>> differences({"run": {"seed": 1}}, {"run": {"seed": 2}})
    {'run.seed': '1 in the run, 2 now'}
    """
    before, now = _flat(old), _flat(new)
    before = {**{name: value for name, value in ADDED.items() if name in now}, **before}
    names = [name for name in {**before, **now} if name not in MAY_CHANGE and before.get(name) != now.get(name)]
    return {name: f"{_shown(before.get(name))} in the run, {_shown(now.get(name))} now" for name in names}


def _shown(value: Any) -> str:
    """A setting in a message; a hash by its beginning."""
    text = "not given" if value is None else str(value)
    return f"{text[:8]}..." if _HASH.fullmatch(text) else text


def check_resume_settings(
    old: Mapping[str, Any], new: Mapping[str, Any], *, accept_changes: bool, names: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what changed, or refuse to resume under other settings, and name them; `names`: those of `option_names`.

    Some changes are never accepted: the number of processes, what is trained, the text, and what the rows of weight tables
    stand for, because words would get the vectors of other words.
    """
    changed = differences(old, new)
    before, now = run_kind(old), run_kind(new)
    if None not in (before, now) and before != now:
        raise PolysemeError(f"this folder holds another kind of run ({before}, not {now}): choose another folder")
    for name, what in (
        (VOCABULARY, "words, labels or subwords of this run"),
        ("settings.corpus", "text of this run, or how it is split,"),
    ):
        if any(each == name or each.startswith(f"{name}.") for each in changed):
            raise PolysemeError(
                f"the {what} changed since it began: give the same data and options to resume it, or choose another folder"
            )
    if "run.world_size" in changed:
        raise PolysemeError(f"processes: {changed['run.world_size']}; resume a run with as many processes as it began with")
    if changed and not accept_changes:
        listed = listed_changes(changed, names)
        raise PolysemeError(
            f"this folder holds a run with other settings ({listed}): give the old ones to resume it, give "
            f"{arg('accept_changes', True)} to resume it with the new ones, or choose another folder"
        )
    return changed


def run_kind(settings: Mapping[str, Any]) -> str | None:
    """What a run trains: a method of `polyseme pretrain`, an adaptation or a task; None: its settings do not say.

    The first versions of three methods did not write their names; they are known by what only they have.

    >>> run_kind({"settings": {"pretraining": {"method": "taglm"}}}), run_kind({"settings": {"pretraining": {"size": "tiny"}}})
    ('taglm', 'elmo')
    """
    own = settings.get("settings", settings)
    pretraining = own.get("pretraining")
    if pretraining is None:
        return next((name for name in _KINDS if name in own), None)
    unnamed = "elmo" if "vocabulary" not in own else "bert" if "masking" in pretraining else "gpt"
    return str(pretraining.get("method", unnamed))


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = value
    return flat
