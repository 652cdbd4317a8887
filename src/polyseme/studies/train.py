"""From files to a trained task in one call: data is read, encoders are found by their names, options go by plain names.

The configs of tasks, features, fitting and optimizer are separate, because each belongs to its own part; whoever trains a task
thinks of one list of options. Their names are those of the fields, but for the few that several configs have.
"""

from __future__ import annotations

import dataclasses
import logging
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.options import options_of, parsed
from polyseme.base.run import Run
from polyseme.encoders import folder as models
from polyseme.encoders.base import Encoder
from polyseme.encoders.shipped import NAMES
from polyseme.formats.load import load
from polyseme.studies.recipes import recipe_options
from polyseme.tasks import folder
from polyseme.tasks.base import Task
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.features import split_encoders
from polyseme.tasks.fit import FitResult, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.registry import configure_task, default_configs, task_class
from polyseme.text.words import Splitter, get_splitter

NONE = "none"
"""The name of no encoder at all."""
PathName = str | Path
Encoders = str | Path | Encoder | Sequence[str | Path | Encoder]
Tell = Callable[[str], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Files:
    """Labelled data."""

    train: PathName
    dev: PathName | None = None
    """None: the last tenth of the training data."""
    test: PathName | None = None


def train(
    task: str,
    data: PathName,
    *,
    out: PathName,
    dev: PathName | None = None,
    test: PathName | None = None,
    encoders: Encoders = "en",
    splitter: str | Splitter | None = None,
    cache: PathName | None = None,
    seed: int = 0,
    device: str | None = None,
    precision: str | None = None,
    accept_changes: bool = False,
    **options: Any,
) -> Task:
    """Train a task on a file, and get it back ready to answer; `out` keeps it for `load_task`, its scores in `result.json`.

    `task`: tagging (or ner, pos, chunking), classification, pairs (or nli), choices, roles (srl), reading (squad),
    coreference (coref), generation. `encoders`: `none`, or models joined by `+` (shipped names, folders, hub ids, files of
    vectors), or a loaded one, or a list. `splitter`: how raw text becomes words; not given: as the first encoder does.
    `options`: fields of the task's config and of `FeaturesConfig`, `TaskWordConfig`, `FitConfig` and `OptimConfig` by their
    names, and the names in `RENAMED`.
    Ctrl-C stops it after its step, and the same call goes on.

    >>> import polyseme
    >>> tagger = polyseme.train("ner", "train.conll", dev="dev.conll", encoders="en", mode="frozen", out="my-tagger")
    >>> tagger.predict(["Ann lives in Paris ."])
    [TaggedSentence(words=['Ann', 'lives', 'in', 'Paris', '.'], tags=['B-PER', 'O', 'O', 'B-LOC', 'O'])]
    >>> polyseme.load_task("my-tagger").predict([["Paris"]])[0].words
    ['Paris']
    """
    kind = task_named(task)
    run = Run.from_environment(seed=seed, device=device, precision=precision)
    cut = get_splitter(splitter) if isinstance(splitter, str) else splitter
    job = Job(kind, Files(data, dev, test), out, encoders, cut=cut, cache=cache, options=options)
    outcome = job.train(run, accept_changes=accept_changes)
    if outcome.result.ended is None:
        raise KeyboardInterrupt(f"stopped at step {outcome.result.steps}; the same call goes on from there")
    return outcome.task


def load_task(path: PathName, *, device: str | None = None) -> Task:
    """Read a trained task, ready to answer, on `device` (not given: the CPU).

    >>> import polyseme                                              # doctest: +SKIP
    >>> polyseme.load_task("my-tagger").predict(["Ann is here ."])   # doctest: +SKIP
    """
    return folder.load(Path(path).expanduser(), device=Run.from_environment(device=device or "cpu").device)


@dataclass(frozen=True)
class Job:
    """What is trained, on what, and where it goes."""

    kind: type[Task]
    files: Files
    out: PathName
    encoders: Encoders
    cut: Splitter | None = None
    """How raw text becomes words; None: as the first encoder does."""
    cache: PathName | None = None
    """Where frozen layers are kept; None: in `out`."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """By their plain names."""

    def train(self, run: Run, *, accept_changes: bool = False, tell: Tell = _log.info) -> FitResult:
        """Train it; `tell` hears what a person should know."""
        out = Path(self.out).expanduser()
        if models.is_folder(out):
            raise UsageError(f"{out} holds a model, which a trained task would overwrite: choose another folder for it")
        config, fitting = configured(self.kind, self.options)
        tell = tell if run.is_main_process else _log.debug
        learned, judged, asked = self._read(config, tell)
        encoders = encoders_of(self.encoders)
        if usual := recipe_options(config, self.options, encoders):
            tell(f"fine-tuned as published: {', '.join(f'{name} {value}' for name, value in usual.items())}")
            config, fitting = configured(self.kind, {**self.options, **usual})
        if "positions" not in self.options and not config.is_linear:
            config = placed(config, encoders, tell)
        return fit(
            self.kind,
            learned,
            judged,
            out,
            config,
            fitting,
            run,
            encoders=encoders,
            cut=self.cut,
            test=asked,
            cache=None if self.cache is None else Path(self.cache).expanduser(),
            accept_changes=accept_changes,
        )

    def _read(self, config: TaskConfig, tell: Tell) -> tuple[list[Any], list[Any], list[Any] | None]:
        """The examples of all files, before any model is loaded: what is wrong with them is told at once."""
        kind, files = self.kind, self.files
        repeated = getattr(config, "phrases", "none") != "none" or getattr(config, "sentence_copies", 1) > 1
        if files.dev is None and repeated:
            raise UsageError(
                "with phrases or copies no data can be held out: give dev data (--dev), or train on sentences alone"
            )
        learned = kind.read(files.train, config, training=True)
        if files.dev is None:
            learned, judged = _held_out(learned, files.train, kind.min_dev_examples(config))
            tell(f"{files.train}: the last {len(judged):,} of {len(learned) + len(judged):,} examples are held out as dev data")
        else:
            judged = kind.read(files.dev, config)
        asked = None if files.test is None else kind.read(files.test, config)
        for path, examples in ((files.dev, judged), (files.test, asked)):
            if path is not None and examples is not None and len(examples) < (fewest := kind.min_dev_examples(config)):
                raise UsageError(f"{path} holds {len(examples)} of the {fewest} examples that a score needs; give more")
        config = kind.resolve_defaults(config, learned)
        labels = kind.collect_labels(learned, config)
        for path, examples in ((files.dev, judged), (files.test, asked)):
            for strange in kind.unknown_labels(examples or [], labels, config, path or files.train):
                tell(f"{strange}; the training data has no such label, so it counts as wrong")
        return learned, judged, asked


def placed(config: TaskConfig, encoders: Sequence[Encoder], tell: Tell) -> TaskConfig:
    """The config with the encoders' vectors where they usually stand: those of a TagLM between the layers of a tagger.

    Encoders that differ in it, and networks without such a place, have them at the input.
    """
    usual = {encoder.default_position for encoder in split_encoders(encoders)[1]}
    if len(usual) != 1 or usual <= set(config.features.positions):
        return config
    position = usual.pop()
    try:
        return config.replace(features=config.features.replace(positions=(position,)))
    except ConfigError:
        tell(f"vectors that usually stand {position} a network's layers stand at its input: this one has no such place")
        return config


def _held_out(examples: list[Any], path: PathName, fewest: int) -> tuple[list[Any], list[Any]]:
    count = max(len(examples) // 10, fewest)
    if len(examples) <= fewest:
        given = "1 example" if len(examples) == 1 else f"{len(examples)} examples"
        raise PolysemeError(f"{path} holds {given}, too few to hold some out: give dev data (--dev)")
    return examples[:-count], examples[-count:]


# ---- names


def task_named(name: str) -> type[Task]:
    """The task of that name, or of that other name.

    >>> task_named("ner").kind
    'tagging'
    """
    return task_class(name)


def encoders_of(given: Encoders) -> list[Encoder]:
    """The encoders that are meant, loaded where they are named."""
    if isinstance(given, str):
        return [load(name) for name in named_in(given)]
    if isinstance(given, Path):
        return [load(given)]
    if isinstance(given, Encoder):
        return [given]
    return [encoder for each in given for encoder in encoders_of(each)]


def named_in(names: str) -> list[str]:
    """The models that are joined by `+`. A path may hold a `+` itself: the longest one that is there is taken.

    >>> named_in("vectors.bin+en"), named_in("none")
    (['vectors.bin', 'en'], [])
    """
    if names == NONE:
        return []
    pieces = names.split("+")
    found: list[str] = []
    while pieces:
        ends = range(len(pieces), 0, -1)
        count = next((end for end in ends if _is_there("+".join(pieces[:end]))), 1)
        found.append("+".join(pieces[:count]))
        pieces = pieces[count:]
    if "" in found or NONE in found:
        raise UsageError(f"encoders are {names!r}; expected {NONE}, or models joined by +, such as en or vectors.bin+en")
    return found


def _is_there(name: str) -> bool:
    return name in NAMES or (name != "" and Path(name).expanduser().exists())


# ---- options


def option_names(kind: type[Task]) -> dict[str, tuple[str, ...]]:
    """Every option of a task, and the fields that it sets."""
    return {name: option.paths for name, option in options_of(default_configs(kind.kind)).items()}


def listed(kind: type[Task], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with lists where the task has lists, which may be given as one value, or as several divided by commas.

    >>> listed(task_named("ner"), {"positions": "input,output", "hidden_size": 5})
    {'positions': ['input', 'output'], 'hidden_size': 5}
    """
    known = options_of(default_configs(kind.kind))
    return {
        name: parsed(value, known[name].hint) if name in known and typing.get_origin(known[name].hint) is tuple else value
        for name, value in options.items()
    }


def configured(kind: type[Task], options: Mapping[str, Any]) -> tuple[TaskConfig, FitConfig]:
    """The configs that the options make of the default ones."""
    return configure_task(kind.kind, options)
