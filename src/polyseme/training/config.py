"""How long to train, and how often to look: the settings of the loop."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.training.optim import OptimConfig

BUDGETS = ("steps", "epochs", "words", "minutes")
MAY_CHANGE = {"config.log_every", "config.checkpoint_every", "config.checkpoint_seconds", "run.device"}
"""What may change when a run is resumed, because the weights do not depend on it (but for rounding, on another device)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainConfig(Config):
    """One budget (steps, epochs, words or minutes) and the settings of the loop."""

    optim: OptimConfig = dataclasses.field(default_factory=OptimConfig)
    """How the weights move."""
    steps: int | None = None
    """Budget: steps of the optimizer."""
    epochs: float | None = None
    """Budget: passes over the training data."""
    words: int | None = None
    """Budget: words, over all processes."""
    minutes: float | None = None
    """Budget: minutes. A rate measured before step 1 turns it into steps; the first half may add some (`budget`)."""
    accumulate: int = 1
    """Batches for one step; their gradients are averaged, batch by batch."""
    eval_every: int | None = None
    """Steps between evaluations; None: ten times a run, evenly."""
    patience: int | None = None
    """Stop after this many evaluations without a better score; None: never."""
    checkpoint_every: int | None = None
    """Steps between checkpoints; None: by the clock alone."""
    checkpoint_seconds: float | None = None
    """The longest time between checkpoints; None: two minutes, or fifty times what writing one takes, if that is longer."""
    log_every: int = 100
    """Steps between lines of the log."""

    def __post_init__(self) -> None:
        given = [name for name in BUDGETS if getattr(self, name) is not None]
        problems = []
        if len(given) != 1:
            what = " and ".join(given) if given else "no budget"
            problems.append(f"{what} given; give exactly one of {', '.join(BUDGETS)}")
        counts = (*BUDGETS, "accumulate", "eval_every", "patience", "checkpoint_every", "checkpoint_seconds", "log_every")
        for name in counts:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                problems.append(f"{name} is {value}; it must be above 0, and finite")
        if problems:
            raise ConfigError("; ".join(problems))


VOCABULARY = "settings.rows"
"""What the rows of a run's tables stand for, among its settings."""
DEV_DATA = "settings.judged"
"""The held-out data: scores by other data cannot be compared."""
_TOLD = ("task", "adaptation", "word2vec", "fasttext", "glove")
"""Names among the settings that say themselves what a run trains."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """What differs between two nested settings, by its dotted name; `MAY_CHANGE` ones do not count.

    >>> differences({"run": {"seed": 1}}, {"run": {"seed": 2}})
    {'run.seed': '1 in the run, 2 now'}
    """
    before, now = _flat(old), _flat(new)
    names = [name for name in {**before, **now} if name not in MAY_CHANGE and before.get(name) != now.get(name)]
    return {name: f"{before.get(name, 'nothing')!s} in the run, {now.get(name, 'nothing')!s} now" for name in names}


def check_resume_settings(old: Mapping[str, Any], new: Mapping[str, Any], *, accept_changes: bool) -> dict[str, str]:
    """Refuse to resume under other settings, naming them.

    A change of the number of processes is never accepted, nor one of what is trained, of the text, or of what the rows of
    tables stand for (words, labels, pieces): they would have the vectors of others.
    """
    changed = differences(old, new)
    before, now = run_kind(old), run_kind(new)
    if None not in (before, now) and before != now:
        raise PolysemeError(f"this folder holds a run of another kind ({before} in the run, {now} now): choose another folder")
    if any(name.startswith(VOCABULARY) for name in changed):
        raise PolysemeError(
            "the words, labels or pieces of this run are not those that it began with; give the same data and options to go "
            "on, or choose another folder"
        )
    if "settings.corpus" in changed:
        raise PolysemeError(
            "the text, or how it is split, is not what this run began with; give the same text and options to go on, or choose "
            "another folder"
        )
    if "run.ranks" in changed:
        raise PolysemeError(f"processes: {changed['run.ranks']}; a run goes on with as many as it began with")
    if changed and not accept_changes:
        told = "; ".join(f"{name.removeprefix('config.')}: {how}" for name, how in changed.items())
        raise PolysemeError(
            f"this folder holds a run with other settings ({told}); give the old ones to go on, "
            "accept the changes (--accept-changes) to go on "
            "with the new ones from its last checkpoint, or choose another folder"
        )
    return changed


def run_kind(settings: Mapping[str, Any]) -> str | None:
    """What a run trains, by its settings: a method of `polyseme pretrain`, an adaptation or a task; None: they do not say.

    Three methods never told their names, and are known by what only they have.

    >>> run_kind({"settings": {"pretraining": {"method": "taglm"}}}), run_kind({"settings": {"pretraining": {"size": "tiny"}}})
    ('taglm', 'elmo')
    """
    own = settings.get("settings", settings)
    taught = own.get("pretraining")
    if taught is None:
        return next((name for name in _TOLD if name in own), None)
    pieces = "rows" in own
    usual = "elmo" if not pieces else "bert" if "masking" in taught else "gpt"
    return str(taught.get("method", usual))


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = value
    return flat
