"""The tasks by name, each imported when it is first needed. Imports no torch.

A new task is one line here. Its config says its options, its class the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyseme.base.config import Config
from polyseme.base.errors import UsageError, arg, nearest
from polyseme.base.imports import import_object
from polyseme.base.options import Option, build, options_of
from polyseme.tasks.fit_config import FitConfig

if TYPE_CHECKING:
    from polyseme.tasks.base import Task
    from polyseme.tasks.config import TaskConfig


@dataclass(frozen=True)
class TrainingDefaults:
    """How long a task is trained by default, and how fast it learns."""

    examples: int
    """Examples to see in all: small data is passed over more often, within the numbers of epochs."""
    min_epochs: int
    max_epochs: int
    batch_size: int = 32
    learning_rate: float = 1e-3
    min_steps: int = 100
    """Of small data, which is passed over more often than `max_epochs`."""
    batch_words: int | None = None
    """Words of a batch, about, where texts are so long that `batch_size` of them have more; None: any number."""

    def epochs(self, examples: int) -> int:
        """Return the number of passes over so many training examples.

        >>> defaults = TrainingDefaults(examples=80_000, min_epochs=3, max_epochs=20)
        >>> [defaults.epochs(number) for number in (300, 8_000, 100_000)]
        [20, 10, 3]
        """
        return min(max(round(self.examples / max(examples, 1)), self.min_epochs), self.max_epochs)

    def resolved_batch_size(self, lengths: Sequence[int]) -> int:
        """Return the examples of a batch, for texts of these lengths.

        >>> defaults = TrainingDefaults(examples=80_000, min_epochs=3, max_epochs=20, batch_words=2048)
        >>> [defaults.resolved_batch_size(lengths) for lengths in ([20, 40], [500, 700], [5000])]
        [32, 3, 1]
        """
        if self.batch_words is None or not any(lengths):
            return self.batch_size
        return min(self.batch_size, max(1, self.batch_words * len(lengths) // sum(lengths)))


@dataclass(frozen=True)
class TaskEntry:
    """Where a task is defined."""

    home: str
    """Its class: `module:Class`."""
    config: str
    """Its config class, in a module without torch."""
    training: TrainingDefaults = TrainingDefaults(examples=80_000, min_epochs=3, max_epochs=20)


TASKS = {
    "tagging": TaskEntry(
        "polyseme.tasks.tagging:Tagging",
        "polyseme.tasks.tagging_config:TaggingConfig",
        TrainingDefaults(examples=200_000, min_epochs=5, max_epochs=20, learning_rate=2e-3, batch_words=2048),
    ),
    "classification": TaskEntry(
        "polyseme.tasks.classification:Classification",
        "polyseme.tasks.classification_config:ClassificationConfig",
        TrainingDefaults(examples=80_000, min_epochs=3, max_epochs=20),
    ),
    "pairs": TaskEntry(
        "polyseme.tasks.pairs:Pairs",
        "polyseme.tasks.pairs_config:PairsConfig",
        TrainingDefaults(examples=120_000, min_epochs=4, max_epochs=20),
    ),
    "choices": TaskEntry(
        "polyseme.tasks.choices:Choices",
        "polyseme.tasks.choices_config:ChoicesConfig",
        TrainingDefaults(examples=20_000, min_epochs=3, max_epochs=10, batch_size=8),
    ),
    "reading": TaskEntry(
        "polyseme.tasks.reading:Reading",
        "polyseme.tasks.reading_config:ReadingConfig",
        TrainingDefaults(examples=24_000, min_epochs=4, max_epochs=12),
    ),
    "roles": TaskEntry(
        "polyseme.tasks.roles:Roles",
        "polyseme.tasks.roles_config:RolesConfig",
        TrainingDefaults(examples=480_000, min_epochs=5, max_epochs=20, batch_size=64),
    ),
    "coreference": TaskEntry(
        "polyseme.tasks.coreference:Coreference",
        "polyseme.tasks.coreference_config:CoreferenceConfig",
        TrainingDefaults(examples=4_000, min_epochs=5, max_epochs=20, batch_size=1),
    ),
    "generation": TaskEntry(
        "polyseme.tasks.generation:Generation",
        "polyseme.tasks.generation_config:GenerationConfig",
        TrainingDefaults(examples=430_000, min_epochs=5, max_epochs=20, batch_size=64),
    ),
}
"""By the name in `task.json` and on the command line."""

ALIASES = {
    "ner": "tagging",
    "pos": "tagging",
    "chunking": "tagging",
    "nli": "pairs",
    "srl": "roles",
    "squad": "reading",
    "coref": "coreference",
}
"""Other names of tasks."""

FINETUNING = ("encoder_lr_multiplier", "layer_decay", "unfreeze")
"""Options of fine-tuned encoders."""


def task_name(name: str) -> str:
    """Return the name of a task in `TASKS`, for an alias too.

    >>> task_name("ner"), task_name("pairs")
    ('tagging', 'pairs')
    """
    found = ALIASES.get(name, name)
    if found not in TASKS:
        raise UsageError(f"there is no task called {name!r}{nearest(name, [*TASKS, *ALIASES])}")
    return found


def task_class(name: str) -> type[Task]:
    """Return the class of a task."""
    return import_object(TASKS[task_name(name)].home)


def task_config_class(name: str) -> type[TaskConfig]:
    """Return the config class of a task, without importing torch.

    >>> task_config_class("srl").__name__
    'RolesConfig'
    """
    return import_object(TASKS[task_name(name)].config)


def default_configs(name: str) -> dict[str, Config]:
    """Return the default configs of a task and of its training: their settings are the options of `train`."""
    defaults = TASKS[task_name(name)].training
    fit = FitConfig(batch_size=defaults.batch_size if defaults.batch_words is None else None)
    optim = fit.optim.replace(learning_rate=defaults.learning_rate)
    return {"task": task_config_class(name)(), "fit": fit.replace(optim=optim)}


def task_options(name: str) -> dict[str, Option]:
    """Return all options of a task, by name."""
    return options_of(default_configs(name))


def configure_task(
    name: str, options: Mapping[str, Any], defaults: Mapping[str, Config] | None = None
) -> tuple[TaskConfig, FitConfig]:
    """Build the configs of a task and of its training from options; `polyseme train TASK --help` lists them.

    `defaults`: configs with the values of options that are not given; None: `default_configs`.
    """
    task, fit = build(defaults or default_configs(name), options, task_name(name)).values()
    idle = [option for option in FINETUNING if option in options]
    if idle and task.features.mode == "frozen":  # type: ignore[attr-defined]
        needs = "needs" if len(idle) == 1 else "need"
        raise UsageError(f"{', '.join(map(arg, idle))} {needs} {arg('mode', 'finetune')}: the encoders are frozen")
    return task, fit  # type: ignore[return-value]
