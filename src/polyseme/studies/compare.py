"""Tasks times encoders times seeds: every experiment trained once, side by side, and the table of what each encoder buys.

Experiments lie in folders by their names. Stopped and started again, done experiments stay done and others resume; one
that fails is told at the end with its log, and stops no other.
"""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.signals import GracefulStop
from polyseme.encoders.shipped import resolve_path
from polyseme.studies.experiment import EXPERIMENT_FILE, Experiment, write_experiment
from polyseme.studies.finetuning import FROZEN, TUNED, default_options
from polyseme.studies.fingerprint import quick_fingerprint
from polyseme.studies.options import OptionUse, check_scopes, option_problems, options_for
from polyseme.studies.processes import Process, failure_reason, run_parallel, start_process
from polyseme.studies.sets import GROUPS, labelled_set, members
from polyseme.studies.train import listed, named_in, task_named
from polyseme.tasks.base import Task

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Study:
    """What is compared."""

    out: Path
    tasks: tuple[str, ...]
    """Labelled sets and groups of them."""
    rows: tuple[str, ...]
    """Encoders joined by `+`, with `:finetune` behind them where they are not frozen; `word2vec` and `elmo` stand for those
    of the set's language."""
    seeds: tuple[int, ...] = (1, 2, 3)
    vectors: dict[str, str] = field(default_factory=dict)
    """The file or folder of word vectors of each language, for `word2vec`."""
    options: dict[str, Any] = field(default_factory=dict)
    """That differ from the sets' own, for every experiment or for some (`polyseme.studies.options`)."""
    shares: tuple[float, ...] = (1.0,)
    """Of the training data: several make a curve."""
    models: dict[str, str] = field(default_factory=dict)
    """Short names of models, for rows."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out).expanduser())  # where the experiments' own processes look for it, too

    @property
    def sets(self) -> tuple[str, ...]:
        """The labelled sets, those of groups among them, each once."""
        return tuple(dict.fromkeys(name for task in self.tasks for name in members(task)))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups whose means are wanted."""
        return tuple(task for task in self.tasks if task in GROUPS)

    def experiments(self) -> list[Experiment]:
        """All experiments, by set, seed and row: the first seed of all rows comes first, so that a first table comes soon."""
        found = []
        for name in self.sets:
            kind, language = _task(name), labelled_set(name).language
            for seed, share, row in itertools.product(self.seeds, self.shares, self.rows):
                part = [] if share == 1 else [f"share-{share:g}"]
                out = self.out.joinpath("cells", name, row.replace("/", "_").replace(":", "-"), *part, str(seed))
                options = {"train_fraction": share, **listed(kind, self._options(name, row))}
                encoders = self._encoders(row, language)
                made = {each: known for each in encoders.split("+") if (known := quick_fingerprint(each)) is not None}
                found.append(Experiment(name, row, encoders, seed, str(out), str(self.out / "layers"), options, made))
        return found

    def _encoders(self, row: str, language: str) -> str:
        names = []
        for name in row.removesuffix(f":{TUNED}").split("+"):
            if name in self.models:
                name = str(Path(self.models[name]).resolve())
            elif name == "word2vec":
                if language not in self.vectors:
                    raise UsageError(f"word2vec needs vectors for {language!r}: give --vectors {language}=FILE")
                name = str(Path(self.vectors[language]).resolve())
            names.append(language if name == "elmo" else name)
        return "+".join(names)

    def _options(self, name: str, row: str) -> dict[str, Any]:
        """Those of the experiments of a set and a row, without the set's own."""
        found = options_for(self.options, self._words(name, row))
        return {"mode": TUNED, **found} if row.endswith(f":{TUNED}") else found

    def _words(self, name: str, row: str) -> set[str]:
        """What the experiments of a set and a row go by, in options."""
        plain = row.removesuffix(f":{TUNED}")
        return {name, plain, *(each for each in self.groups if name in members(each)), FROZEN if plain == row else TUNED}

    def _held(self) -> set[str]:
        """The options that hold for some experiment."""
        experiments = [self._words(name, row) for name, row in itertools.product(self.sets, self.rows)]
        return {scoped for scoped in self.options if any(set(scoped.split(":")[:-1]) <= words for words in experiments)}

    def without(self, models: Collection[str]) -> Study:
        """The same without the rows that need some models, and the options that hold for those rows alone."""
        needs = {row: set(row.removesuffix(f":{TUNED}").split("+")) for row in self.rows}
        fewer = dataclasses.replace(self, rows=tuple(row for row in self.rows if not needs[row] & set(models)))
        held = fewer._held()
        return dataclasses.replace(fewer, options={name: value for name, value in self.options.items() if name in held})

    def check(self) -> None:
        """Complain about what no experiment could be trained with, before any is: names of sets, options and their values."""
        plain = [row.removesuffix(f":{TUNED}") for row in self.rows]
        check_scopes(self.options, {*self.sets, *self.groups, *plain, TUNED, FROZEN})
        for scoped in self.options:
            if scoped not in self._held():
                raise UsageError(
                    f"--option {scoped} applies to no experiment: no set and row match all words before the name; remove it, "
                    f"or compare what it is for (the rows are {', '.join(self.rows)})"
                )
            if scoped.rpartition(":")[2] == "train_fraction" and self.shares != (1.0,):
                raise UsageError(f"--option {scoped} stands against --shares; give one of them")
        uses = []
        for name, row in itertools.product(self.sets, self.rows):
            labelled, given = labelled_set(name), self._options(name, row)
            own = default_options(labelled, given, self._encoders(row, labelled.language))
            uses.append(OptionUse(name, _task(name), own, given))
        if found := option_problems(uses):
            raise UsageError("; ".join(found))
        places = Counter(experiment.out for experiment in self.experiments())
        if twice := [place for place, count in places.items() if count > 1]:
            raise UsageError(
                f"two experiments would be written to {twice[0]}: give each seed and share once, and rows distinct names"
            )

    def check_files(self) -> None:
        """Complain about data that is missing, before anything is trained."""
        for name in self.sets:
            labelled_set(name).files()

    def check_models(self) -> None:
        """Complain about models that experiments to be trained need and that are missing; those of the hub are fetched."""
        for name in sorted({each for one in self.experiments() if not one.done for each in named_in(one.encoders)}):
            resolve_path(name)

    def run(self, *, jobs: int = 1, device: str | None = None, notify: Notify = print) -> list[Experiment]:
        """Train all experiments that are not done, `jobs` at a time; gives them all, or an error that names those that failed.

        Ctrl-C or SIGTERM stops it: the experiments under way write a checkpoint, and the same call goes on with them.
        """
        self.check()
        experiments = self.experiments()
        self.check_files()
        self.check_models()
        for experiment in experiments:
            if experiment.done and (changed := experiment.changed()):
                told = "; ".join(f"{name}: {how}" for name, how in changed.items())
                notify(f"{_title(experiment)}: kept as it was trained ({told}); remove {experiment.out} to train it again")
        left = [experiment for experiment in experiments if not experiment.done]
        for experiment in left:
            if changed := experiment.changed():  # it could not go on under other options
                told = "; ".join(f"{name}: {how}" for name, how in changed.items())
                notify(f"{_title(experiment)}: begun anew ({told})")
                shutil.rmtree(experiment.out)
        failed: list[Experiment] = []
        with GracefulStop(patient=False) as stop:
            ended = run_parallel(left, lambda experiment: _start(experiment, device, jobs), stop, jobs=jobs)
            for number, (experiment, code) in enumerate(ended, len(experiments) - len(left) + 1):
                failed += [] if experiment.done else [experiment]
                log = _log(experiment)
                end = _score(experiment) if experiment.done else f"failed: {failure_reason(log, code)} (see {log})"
                notify(f"{number} of {len(experiments)}: {_title(experiment)}  {end}")
        if stop.name is not None:
            raise KeyboardInterrupt
        if failed:
            raise PolysemeError(
                f"{len(failed)} of {len(experiments)} experiments failed: {', '.join(map(_title, failed))}; "
                f"the first log is {_log(failed[0])}. The same command tries them again"
            )
        return experiments


def _task(name: str) -> type[Task]:
    return task_named(labelled_set(name).task)


def _start(experiment: Experiment, device: str | None, jobs: int) -> Process:
    """A process that trains an experiment, as one of some jobs; what it says goes into the experiment's log."""
    path = Path(experiment.out, EXPERIMENT_FILE)
    write_experiment(experiment, path)
    command = [sys.executable, "-m", "polyseme.studies.experiment", str(path), *([device] if device else [])]
    return start_process(command, _log(experiment), jobs=jobs)


def _log(experiment: Experiment) -> Path:
    return Path(experiment.out, "cell.log")


def _title(experiment: Experiment) -> str:
    share = "" if experiment.share == 1 else f" {100 * experiment.share:g}% of the data"
    return f"{experiment.set} {experiment.row}{share} seed {experiment.seed}"


def _score(experiment: Experiment) -> str:
    result = experiment.result or {}
    scores = {name: values[result["main"]] for name, values in result.get("scores", {}).items()}
    return ", ".join(f"{name} {value:.4f}" for name, value in scores.items()) + f"  ({result.get('seconds', 0):,.0f} s)"


def group_by_row(experiments: Sequence[Experiment]) -> dict[tuple[str, float, str], list[Experiment]]:
    """Done experiments by set, share of the training data, and row."""
    found: dict[tuple[str, float, str], list[Experiment]] = {}
    for experiment in experiments:
        if experiment.done:
            found.setdefault((experiment.set, experiment.share, experiment.row), []).append(experiment)
    return found
