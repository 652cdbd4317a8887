"""Train a task from files: read the data, load the encoders by their names, resolve the settings, fit.

The configs of a task and of its training are separate, because each belongs to its own part; whoever trains a task thinks of
one list of options (`polyseme.base.options`).
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.shipped import is_shipped
from polyseme.formats.load import load
from polyseme.studies.config import NONE
from polyseme.studies.recipes import layer_options, network_options, recipe_options, word_options
from polyseme.studies.recorded import recorded_configs, recorded_dev_file
from polyseme.studies.script import DataScript
from polyseme.tasks.base import default_splitter
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import UnknownLabel, unknown_labels_message
from polyseme.tasks.features import split_encoders
from polyseme.tasks.fit import FitResult, RunDisplay, Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder_check import check_out
from polyseme.tasks.label_checks import spelling_messages
from polyseme.tasks.leakage import leak_message, leaked_examples, text_hashes
from polyseme.tasks.registry import configure_task, task_class, task_name
from polyseme.tasks.splits import split_plan
from polyseme.text.labelled.dataset_files import is_table_file
from polyseme.text.words import Splitter

PathName = str | Path
Encoders = str | Path | Encoder | Sequence[str | Path | Encoder]
Notify = Callable[[str], None]
_log = logging.getLogger(__name__)
_SHOWN = 5  # labels of a message
_FEW_SCORED = 5
_FEW = 100
"""Examples, of which those that are left may lack a class."""


@dataclass(frozen=True)
class DataFiles:
    """Labelled data."""

    train: PathName
    dev: PathName | None = None
    """None: a random tenth of the training data."""
    test: PathName | None = None


@dataclass(frozen=True)
class TaskJob:
    """What to train, on what, and where it goes."""

    task: str
    """Its name, or an alias."""
    files: DataFiles
    out: PathName
    encoders: Encoders | None
    """None: the shipped model for the script of the data."""
    splitter: Splitter | None = None
    """How raw text is split into words; None: as the first encoder does, or as the script of the data needs."""
    cache: PathName | None = None
    """Folder for the layers of frozen encoders; None: in `out`."""
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of the task and of its training, by name."""
    refuses: bool = True
    """Whether the English model or splitter is refused for Chinese data; a comparison may show what they cost."""
    data: Splits | None = None
    """Examples that are read and divided already; None: those of the files."""
    display: RunDisplay = "all"
    in_memory: bool = False
    """Whether there are no files, only `data`: no columns are guessed."""

    def train(self, run: Run, *, accept_changes: bool = False, notify: Notify = _log.info) -> FitResult:
        """Train the task; `notify` gets what the user should know."""
        out = Path(self.out).expanduser()
        check_out(out)
        notify = notify if run.is_main_process else _log.debug
        recorded = recorded_configs(self.task, out)
        options, config, fitting = self.configured(recorded)
        same = recorded == {"task": config, "fit": fitting}  # other settings are refused or reported when it is resumed
        if same and self.data is None:  # no fold
            notify(f"{out} has a run; settings that you do not give come from it (for a new run choose another folder)")
        if recorded is not None and self.data is None and self.files.dev is None and not accept_changes:
            _refuse_missing_dev(out)
        try:
            data = self.data or self._read(config, run.seed, notify)
        except PolysemeError as error:
            if recorded is None:
                raise
            kept = f"what you do not give comes from the run in {out}: choose another folder for a new one"
            raise UsageError(f"{error} ({kept})") from error
        script = DataScript.of(task_class(self.task), data.train)
        if self.refuses:
            script.check_splitter(self.splitter)
        encoders = load_encoders(script.default_encoder(config, notify) if self.encoders is None else self.encoders)
        if self.refuses:
            script.check_encoders(encoders)
        script.report_encoders(encoders, notify)
        if recorded is None:  # a run that is resumed has them
            if recipe := self._recipe(config, options, encoders, script, notify):
                changed, fitting = configure_task(self.task, {**options, **recipe})
                config = changed.with_guess(getattr(config, "guessed", ()))
            if "positions" not in self.options and not config.is_linear:
                config = with_default_position(config, encoders, notify)
        splitter = script.splitter(self.splitter, encoders, notify)
        if recorded is None and task_class(self.task).kind == "tagging":
            used = splitter or default_splitter(split_encoders(encoders)[1])
            script.report_words([example.words for example in data.train], used, notify)
        return fit(
            TaskBuilder(task_class(self.task), config, encoders, splitter),
            data,
            out,
            fitting,
            run,
            cache=None if self.cache is None else Path(self.cache).expanduser(),
            accept_changes=accept_changes,
            display=self.display,
        )

    def read(self, seed: int) -> Splits:
        """Read all files as for a new run, and report nothing but errors."""
        return self._read(self.configured()[1], seed, _log.debug)

    def configured(self, recorded: Mapping[str, Config] | None = None) -> tuple[dict[str, Any], TaskConfig, FitConfig]:
        """Return the options, with the columns of the training data if they are guessed, and the configs.

        `recorded`: the configs of the run that is resumed.
        """
        config, _ = configure_task(self.task, self.options, recorded)
        known = recorded is not None or self.in_memory
        guessed = {} if known else task_class(self.task).guessed_options(self.files.train, config, self.options)
        options = {**guessed, **self.options}
        config, fitting = configure_task(self.task, options, recorded)
        names = {*guessed, *getattr(config, "guessed", ())} - self.options.keys()
        return options, config.with_guess(names), fitting

    def _recipe(
        self, config: TaskConfig, options: Mapping[str, Any], encoders: list[Encoder], script: DataScript, notify: Notify
    ) -> dict[str, Any]:
        """Options that follow from the encoders and the data, where the user gives none."""
        recipe = recipe_options(config, options, encoders)
        if recipe:
            notify(f"fine-tuning as published: {', '.join(arg(name, value) for name, value in recipe.items())}")
        given = task_name(self.task), config, options, encoders
        own = {**network_options(*given), **word_options(*given), **layer_options(*given)}
        return {**recipe, **own, **script.options(config, options, encoders, notify)}

    def _read(self, config: TaskConfig, seed: int, notify: Notify) -> Splits:
        """Read all files before any model is loaded, so that problems with them are reported at once."""
        task, files = task_class(self.task), self.files
        train, scored = self.read_training_data(config, notify)
        if files.dev is None:
            train, dev = self._hold_out(train, scored, config, seed)
            part = f"{len(dev):,} of {len(train) + len(dev):,} examples"
            notify(f"{files.train}: {part}, drawn at random by {arg('seed', seed)}, are held out as dev data")
        else:
            dev = self._read_scored(files.dev, config, train, notify)
        test = None if files.test is None else self._read_scored(files.test, config, train, notify)
        for path, examples in ((files.dev, dev), (files.test, test)):
            if path is not None and examples is not None and len(examples) < (fewest := task.min_dev_examples(config)):
                raise UsageError(f"{path} has {len(examples)} of the {fewest} examples that a score needs; give more")
        for message in self.leaks(train, dev, test):
            notify(message)
        config = task.resolve_defaults(config, train)
        labels = task.collect_labels(train, config)
        for path, examples in ((files.dev, dev), (files.test, test)):
            unknowns = task.unknown_labels(examples or [], labels, config, path or files.train)
            if path is not None and _has_other_labels(examples or [], unknowns):
                raise UsageError(_other_labels(path, [each.label for each in unknowns], labels))
            if unknowns:
                notify(unknown_labels_message(unknowns, path or files.train))
        dev_file = None if files.dev is None else str(Path(files.dev).expanduser().absolute())
        names = {"dev": str(files.dev or files.train), "test": str(files.test)}
        return Splits(train, dev, test, names, dev_file=dev_file)

    def leaks(self, train: Sequence[Any], dev: Sequence[Any], test: Sequence[Any] | None) -> list[str]:
        """Say of dev and test files, each once, how many of their examples have texts of the training data."""
        task, found = task_class(self.task), dict[str, str]()
        known = text_hashes(task, train)
        for path, examples in ((self.files.dev, dev), (self.files.test, test)):
            if path is not None and examples and (leaked := leaked_examples(task, known, examples)):
                found[str(path)] = f"{path}: {leak_message(leaked, len(examples))}"
        return list(found.values())

    def _read_scored(self, path: PathName, config: TaskConfig, train: list[Any], notify: Notify) -> list[Any]:
        """Read dev or test data; labels that differ from those of the training data only in case or blanks are theirs."""
        task = task_class(self.task)
        known = sorted({label for example in train for label in _labels(example) if label is not None})
        examples, merged = task.read_scored(path, config, known)
        for message in spelling_messages(merged):
            notify(f"{path}: {message}")
        return examples

    def read_training_data(self, config: TaskConfig, notify: Notify) -> tuple[list[Any], list[Any]]:
        """Return the examples to train on, and those that may be held out: the same, or whole sentences of trees, each once."""
        task, path = task_class(self.task), self.files.train
        examples, merged = task.merge_labels(task.read(path, config, training=True), config)
        for message in (*spelling_messages(merged), *task.data_problems(examples, config)):
            notify(f"{path}: {message}")
        if task.repeats_sentences(examples, config):
            return examples, self._read_scored(path, config, examples, _log.debug)
        return examples, examples

    def _hold_out(self, examples: list[Any], scored: list[Any], config: TaskConfig, seed: int) -> tuple[list[Any], list[Any]]:
        """Return the examples to train on, and a tenth that is held out (`polyseme.tasks.splits`)."""
        task = task_class(self.task)
        fewest = task.min_dev_examples(config)
        if len(scored) <= fewest:
            given = "1 example" if len(scored) == 1 else f"{len(scored)} examples"
            raise PolysemeError(f"{self.files.train} has {given}, too few to hold some out: give {arg('dev')}")
        kept, held = split_plan(task, scored, config).hold_out(seed, fewest=fewest)
        dev = [scored[number] for number in held]
        self._check_classes([scored[number] for number in kept], scored, config)
        return [scored[number] for number in kept] if scored is examples else self.without(examples, dev), dev

    def _check_classes(self, kept: list[Any], scored: list[Any], config: TaskConfig) -> None:
        """Name the cause where the examples that are left cannot be trained on, and all together could."""
        task = task_class(self.task)
        if len(scored) > _FEW:
            return
        try:
            task.collect_labels(kept, task.resolve_defaults(config, scored))
        except PolysemeError as error:
            task.collect_labels(scored, task.resolve_defaults(config, scored))  # that all have one label is another error
            held = len(scored) - len(kept)
            out = f"{held} of them {'is' if held == 1 else 'are'} held out as dev data"
            what = f"{self.files.train} has {len(scored)} examples; {out}"
            advice = f"give more examples of each class, or dev data of its own with {arg('dev')}"
            raise PolysemeError(f"{what}, and the others are too few ({error}): {advice}") from error

    def without(self, examples: list[Any], held: list[Any]) -> list[Any]:
        """Return the examples from other lines of the file than those that are held out."""
        lines = {example.where for example in held}
        return [example for example in examples if example.where not in lines]


def _refuse_missing_dev(out: Path) -> None:
    """Raise an error if the run in a folder had dev data of its own: without it other data would be trained on."""
    if (dev := recorded_dev_file(out)) is None:
        return
    again = arg("dev") if is_table_file(Path(dev)) else arg("dev", dev)
    what = f"{out} has a run with dev data of its own ({arg('dev')} was given)"
    raise UsageError(f"{what}: give {again} again, or choose another folder for a new run")


def _labels(example: Any) -> Sequence[str | None]:
    """The label of a text, or the tags of a sentence."""
    return example.tags if hasattr(example, "tags") else [getattr(example, "label", None)]


def _has_other_labels(examples: Sequence[Any], unknowns: Sequence[UnknownLabel]) -> bool:
    """Whether no label of a file is one of the training data; in a few examples that is chance."""
    given = sum(getattr(example, "label", None) is not None for example in examples)
    return given >= _FEW_SCORED and sum(unknown.times for unknown in unknowns) == given


def _other_labels(path: PathName, given: list[str], known: list[str]) -> str:
    """An error: nothing of a file can be right."""
    theirs, ours = (
        f"{', '.join(map(repr, names[:_SHOWN]))}{' ...' if len(names) > _SHOWN else ''}" for names in (given, known)
    )
    return f"{path} has the labels {theirs}, and none is one of the training data ({ours}): rename them, or give other data"


def with_default_position(config: TaskConfig, encoders: Sequence[Encoder], notify: Notify) -> TaskConfig:
    """The config with the encoder vectors at their default position: those of a TagLM between the layers of a tagger.

    Encoders whose defaults differ, and networks without that position, have them at the input.
    """
    positions = {encoder.default_position for encoder in split_encoders(encoders)[1]}
    if len(positions) != 1 or positions <= set(config.features.positions):
        return config
    position = positions.pop()
    try:
        return config.replace(features=config.features.replace(positions=(position,)))
    except ConfigError:
        where = " and ".join(config.features.positions)
        notify(f"the network has no position {position!r}, the default of this encoder: its vectors enter at {where}")
        return config


def load_encoders(given: Encoders) -> list[Encoder]:
    """Load the encoders that are named, and keep those that are loaded."""
    if isinstance(given, str):
        return [load(name) for name in encoder_names(given)]
    if isinstance(given, Path):
        return [load(given)]
    if isinstance(given, Encoder):
        return [given]
    if not isinstance(given, Iterable):
        raise UsageError(f"{arg('encoder')} is {given!r}; expected {NONE}, a name, a loaded model, or a list of them")
    return [encoder for each in given for encoder in load_encoders(each)]


def encoder_names(names: str) -> list[str]:
    """Split names of models that are joined by `+`. A path may have a `+` itself: the longest one that exists is taken.

    >>> encoder_names("vectors.bin+en"), encoder_names("none")
    (['vectors.bin', 'en'], [])
    """
    if names == NONE:
        return []
    pieces = names.split("+")
    found: list[str] = []
    while pieces:
        ends = range(len(pieces), 0, -1)
        count = next((end for end in ends if _exists("+".join(pieces[:end]))), 1)
        found.append("+".join(pieces[:count]))
        pieces = pieces[count:]
    if "" in found or NONE in found:
        raise UsageError(f"{arg('encoder')} is {names!r}; expected {NONE}, or models joined by +, such as en or vectors.bin+en")
    return found


def _exists(name: str) -> bool:
    return is_shipped(name) or (name != "" and Path(name).expanduser().exists())
