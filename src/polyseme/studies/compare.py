"""Compare encoders: labelled data sets times rows of encoders times seeds, each trained once, and a table of the gains.

Experiments have folders by their names. Run again after a stop, finished experiments stay and others are resumed; one that
fails stops no other and is reported at the end with its log.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from polyseme.analysis.plots import check_plot
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.signals import GracefulStop
from polyseme.encoders.shipped import resolve_path
from polyseme.studies.config import ELMO, NONE, WORD2VEC, CompareConfig, baseline_problems
from polyseme.studies.experiment import EXPERIMENTS_FOLDER, Experiment, quick_fingerprint
from polyseme.studies.finetuning import FINETUNE, FROZEN, default_options, without_mode
from polyseme.studies.options import OptionUse, check_scopes, option_problems, options_for, parse_lists
from polyseme.studies.processes import Process, failure_reason, run_parallel, start_process
from polyseme.studies.report import ComparisonResult, write_report
from polyseme.studies.sets import GROUPS, labelled_set, members
from polyseme.studies.table import NamedCosts, table
from polyseme.studies.train import encoder_names
from polyseme.tasks.base import Task
from polyseme.tasks.registry import task_class
from polyseme.text.labelled.bad_rows import each_file_told_once

Notify = Callable[[str], None]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Study:
    """What is compared."""

    out: Path
    tasks: tuple[str, ...]
    """Labelled data sets, and groups of them."""
    rows: tuple[str, ...]
    """Encoders joined by `+`, with `:finetune` at the end unless they are frozen; `word2vec` and `elmo` are those of the data
    set's language."""
    seeds: tuple[int, ...] = (1, 2, 3)
    vectors: dict[str, str] = field(default_factory=dict)
    """File or folder of word vectors by language, for `word2vec`."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options by name with scope (`polyseme.studies.options`) that differ from those of the data sets."""
    train_fractions: tuple[float, ...] = (1.0,)
    """Fractions of the training data: several give a learning curve."""
    models: dict[str, str] = field(default_factory=dict)
    """Models by the short names in the rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out).expanduser())  # as the processes of the experiments see it

    @classmethod
    def from_config(cls, config: CompareConfig, out: str | Path) -> Self:
        """Build the study that a config describes, and check it."""
        names = tuple(dict.fromkeys(config.tasks))
        rows = config.rows({labelled_set(each).language for name in names for each in members(name)})
        if problem := next(iter(baseline_problems(config.baseline, rows)), None):
            raise UsageError(problem)
        study = cls(
            Path(out),
            names,
            rows,
            tuple(dict.fromkeys(config.seeds)),
            vectors=config.vector_files(),
            train_fractions=tuple(dict.fromkeys(config.train_fractions)),
            options=config.scoped_options(),
            models=config.model_paths(),
        )
        study.check()
        return study

    @property
    def sets(self) -> tuple[str, ...]:
        """The labelled data sets, with those of groups, each once."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in members(task)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of data sets whose means are in the table."""
        return tuple(task for task in self.tasks if task in GROUPS)

    def experiments(self) -> list[Experiment]:
        """Return all experiments, by data set, seed and row, so that a first table with all rows comes soon."""
        experiments = []
        for name in self.sets:
            kind, language = _task(name), labelled_set(name).language
            for seed, fraction, row in itertools.product(self.seeds, self.train_fractions, self.rows):
                below = [] if fraction == 1 else [f"share-{fraction:g}"]
                out = self.out.joinpath(EXPERIMENTS_FOLDER, _folder_name(name), _folder_name(row), *below, str(seed))
                options = {"train_fraction": fraction, **parse_lists(kind.kind, self._options(name, row))}
                encoders = self._encoders(row, language)
                made = {each: known for each in encoders.split("+") if (known := quick_fingerprint(each)) is not None}
                experiments.append(Experiment(name, row, encoders, seed, str(out), str(self.out / "layers"), options, made))
        return experiments

    def _encoders(self, row: str, language: str) -> str:
        names = []
        for name in without_mode(row).split("+"):
            if name in self.models:
                name = str(Path(self.models[name]).resolve())
            elif name == WORD2VEC:
                if language not in self.vectors:
                    given = arg("vectors", f"{language}=FILE")
                    raise UsageError(f"the row {row!r} needs word vectors for the language {language!r}: give {given}")
                name = str(Path(self.vectors[language]).resolve())
            names.append(language if name == ELMO else name)
        return "+".join(names)

    def _options(self, name: str, row: str) -> dict[str, Any]:
        options = options_for(self.options, self._scopes(name, row))
        return {"mode": FINETUNE, **options} if row != without_mode(row) else options

    def _scopes(self, name: str, row: str) -> set[str]:
        plain = without_mode(row)
        return {name, plain, *(each for each in self.groups if name in members(each)), FROZEN if plain == row else FINETUNE}

    def _used_options(self) -> set[str]:
        """The options that apply to some experiment."""
        scopes = [self._scopes(name, row) for name, row in itertools.product(self.sets, self.rows)]
        return {scoped for scoped in self.options if any(set(scoped.split(":")[:-1]) <= each for each in scopes)}

    def without(self, models: Collection[str]) -> Study:
        """Return the study without the rows that need some models, and without the options of these rows alone."""
        needs = {row: set(without_mode(row).split("+")) for row in self.rows}
        fewer = dataclasses.replace(self, rows=tuple(row for row in self.rows if not needs[row] & set(models)))
        used = fewer._used_options()
        return dataclasses.replace(fewer, options={name: value for name, value in self.options.items() if name in used})

    def check(self) -> None:
        """Raise an error for unknown data sets and options and for refused values, before anything is trained."""
        check_scopes(self.options, {*self.sets, *self.groups, *map(without_mode, self.rows), FINETUNE, FROZEN})
        for scoped in self.options:
            if scoped not in self._used_options():
                raise UsageError(
                    f"{arg('option', scoped)} applies to no experiment: remove it, or add the rows or data sets that it is for "
                    f"(the rows are {', '.join(self.rows)})"
                )
            if scoped.rpartition(":")[2] == "train_fraction" and self.train_fractions != (1.0,):
                raise UsageError(f"{arg('option', scoped)} contradicts {arg('train_fractions')}: give one of them")
        uses = []
        for name, row in itertools.product(self.sets, self.rows):
            labelled, given = labelled_set(name), self._options(name, row)
            own = default_options(labelled, given, self._encoders(row, labelled.language))
            uses.append(OptionUse(name, _task(name), own, given))
        if problems := option_problems(uses):
            raise UsageError("; ".join(problems))
        folders = Counter(experiment.out for experiment in self.experiments())
        if twice := [folder for folder, count in folders.items() if count > 1]:
            raise UsageError(f"two experiments have the folder {twice[0]}: give rows names that differ in letters or digits")

    def check_files(self) -> list[str]:
        """Raise an error for missing files, and for data that experiments which are not done cannot train on.

        Return what is said of scored texts that are in the training data too.
        """
        for name in self.sets:
            labelled_set(name).files()
        with each_file_told_once():
            left = {one.set: one for one in self.experiments() if not one.done}.values()
            return list(dict.fromkeys(message for experiment in left for message in experiment.check_data()))

    def check_models(self) -> None:
        """Raise an error for missing models of experiments that are not done; download those of the Hugging Face Hub."""
        for name in sorted({each for one in self.experiments() if not one.done for each in encoder_names(one.encoders)}):
            resolve_path(name, [NONE, WORD2VEC, ELMO, *self.models])

    def run(self, *, jobs: int = 1, device: str | None = None, notify: Notify = print) -> list[Experiment]:
        """Run all experiments that are not done, `jobs` at a time; return all, or raise an error that names those that failed.

        Ctrl-C or SIGTERM stops it: running experiments write a checkpoint, and the same call resumes them.
        """
        self.check()
        experiments = self.experiments()
        leaks = self.check_files()
        self.check_models()
        for message in leaks:
            _log.warning("%s", message)
        left = [experiment for experiment in experiments if not experiment.done]
        for experiment in experiments:
            if not (changes := experiment.changes()):
                continue
            if experiment.done:
                notify(f"{experiment.title}: kept as it was trained ({changes}); remove {experiment.out} to train it again")
            else:  # it cannot be resumed under other options
                notify(f"{experiment.title}: started again ({changes})")
                shutil.rmtree(experiment.out)
        failed: list[Experiment] = []
        reasons: dict[str, str] = {}
        with GracefulStop() as stop:
            ended = run_parallel(left, lambda experiment: _start(experiment, device, jobs), stop, jobs=jobs)
            for number, (experiment, code) in enumerate(ended, len(experiments) - len(left) + 1):
                end = experiment.summary
                if not experiment.done:
                    failed.append(experiment)
                    reason = failure_reason(experiment.log, code)
                    first = reasons.setdefault(reason, experiment.title)
                    end = f"failed: {reason if first == experiment.title else f'as {first}'} (see {experiment.log})"
                notify(f"{number} of {len(experiments)}: {experiment.title}  {end}")
        stop.check()
        if failed:
            raise PolysemeError(
                f"{len(failed)} of {len(experiments)} experiments failed: {', '.join(each.title for each in failed)}; "
                f"the first log is {failed[0].log}. The same command tries them again"
            )
        return experiments

    def report(self, baseline: str | None = None, *, plot: bool = False, costs: NamedCosts | None = None) -> ComparisonResult:
        """Write the table of the finished experiments; the default baseline is `word2vec` if it is a row, else the first."""
        baseline = baseline or (WORD2VEC if WORD2VEC in self.rows else next(iter(self.rows), NONE))
        return write_report(self.out, table(self.experiments(), baseline, self.groups), plot=plot, costs=costs)


def run_comparison(config: CompareConfig, out: str | Path, *, notify: Notify = print) -> ComparisonResult:
    """Run a comparison and write its table, also for the finished experiments if it is stopped or some fail."""
    study = Study.from_config(config, out)
    if config.plot:
        check_plot("table.png")
    try:
        study.run(jobs=config.jobs, device=config.device, notify=notify)
    except BaseException:
        if result := study.report(config.baseline, plot=config.plot):
            notify(str(result))
        raise
    return study.report(config.baseline, plot=config.plot)


def _folder_name(name: str) -> str:
    """A data set or a row as the name of a folder."""
    return name.replace("/", "_").replace(":", "-")


def _task(name: str) -> type[Task]:
    return task_class(labelled_set(name).task)


def _start(experiment: Experiment, device: str | None, jobs: int) -> Process:
    """Start the process of an experiment; its output goes to the experiment's log."""
    command = [sys.executable, "-m", "polyseme.studies.experiment", str(experiment.write()), *([device] if device else [])]
    return start_process(command, experiment.log, jobs=jobs)
