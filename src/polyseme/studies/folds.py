"""Cross-validation of a small data set: every part of it is the test data once.

The data is divided into folds, stratified and grouped as held-out data is (`polyseme.tasks.splits`). For each fold a network is
trained on the others, less a tenth by which the best network is chosen, and tested on the fold. A fold that is finished is not
trained again: the same call resumes. Layers of frozen encoders are computed once for all folds. In the end each network
predicts its fold: `OUT/predictions.jsonl` has all examples in the order of the data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base.display import columns, count, format_score, html_table, json_text
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.files import read_json, write_text
from polyseme.base.progress import report
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.studies.train import Encoders, Notify, TaskJob
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import ErrorReport, html_confusion
from polyseme.tasks.fit import RESULT, SCORE_COUNTS, RunDisplay, Splits
from polyseme.tasks.folder import load
from polyseme.tasks.folder_check import FOLDS, PREDICTIONS, check_out_of_folds
from polyseme.tasks.registry import task_class
from polyseme.tasks.splits import split_plan
from polyseme.tasks.training_report import baseline_scores, confusion_block, worst_block

LAYERS = "layers"
_LEAST = 0.05  # points that print as a difference
Scores = dict[str, float]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CrossValidation:
    """The scores of a cross-validation; it prints as a table, and renders in a notebook."""

    out: Path
    task: str
    main: str
    """The main metric."""
    folds: list[Scores]
    """Scores of each fold as test data."""
    pooled: Scores
    """Scores of the predictions for all examples together, each by the network that was not trained on it."""
    baselines: dict[str, list[Scores]]
    """Scores of baselines on each fold, by name."""
    seconds: float
    """That all folds took, with their frozen layers and the predictions."""
    stopped_by: str | None = None
    """The signal that interrupted the training."""
    errors: ErrorReport | None = None
    """What is wrong in the predictions for all examples; None where this call did not predict them."""

    @property
    def predictions(self) -> Path | None:
        """The file with the predictions for all examples, as JSON lines; None: the training was interrupted."""
        return None if self.stopped_by is not None else self.out / PREDICTIONS

    @property
    def mean(self) -> Scores:
        """The mean over folds."""
        return _mean(self.folds)

    @property
    def std(self) -> Scores:
        """The standard deviation over folds."""
        several = len(self.folds) > 1
        return {name: statistics.stdev(fold[name] for fold in self.folds) if several else math.nan for name in self.mean}

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs, and for `result.json`."""
        return {
            "out": str(self.out),
            "task": self.task,
            "main": self.main,
            "folds": len(self.folds),
            "scores": {"test": self.mean},
            "std": {name: None if math.isnan(value) else value for name, value in self.std.items()},
            "pooled": self.pooled,
            "fold_scores": self.folds,
            "baselines": {name: _mean(several) for name, several in self.baselines.items()},
            "predictions": None if self.predictions is None else str(self.predictions),
            "seconds": round(self.seconds, 1),
        }

    def __str__(self) -> str:
        head = f"{self.out}: {self.task}, {count(len(self.folds), 'fold')}, {self.seconds:,.0f} s"
        if self.stopped_by is not None:
            head += ", stopped: the same command continues"
        lines = [columns(self._rows(), indent=0, right=range(1, 20)), self.verdict(), self.comparison()] if self.folds else []
        if self.errors is not None and self.errors.confusion is not None:
            lines.append(confusion_block(self.errors, "all predictions"))
        if self.errors is not None and self.errors.worst:
            lines.append(worst_block(self.errors, "all predictions"))
        blank = "\n" if self.errors is not None else ""
        lines += [] if self.predictions is None else [f"{blank}predictions for all examples: {self.predictions}"]
        return "\n".join(filter(None, [head, *lines]))

    def verdict(self) -> str:
        """Return the mean and the standard deviation of the main metric over folds, beside the means of the baselines."""
        spread = f" ± {100 * self.std[self.main]:.1f}" if len(self.folds) > 1 else ""
        others = [f"{name} {100 * _mean(several)[self.main]:.1f}" for name, several in self.baselines.items()]
        return f"test {', '.join([f'{self.main} {100 * self.mean[self.main]:.1f}{spread}', *others])}"

    def comparison(self) -> str:
        """Return a sentence that compares the means, as they print, with those of the best baseline; empty without one.

        Chance is judged by the gains in each fold.
        """
        name = max(self.baselines, key=lambda each: _mean(self.baselines[each])[self.main], default=None)
        if name is None or len(self.folds) < 2:
            return ""
        gains = [own[self.main] - other[self.main] for own, other in zip(self.folds, self.baselines[name], strict=True)]
        mean, error = statistics.mean(gains), statistics.stdev(gains) / math.sqrt(len(gains))
        points = round(100 * self.mean[self.main], 1) - round(100 * _mean(self.baselines[name])[self.main], 1)
        if abs(points) < _LEAST:
            return f"equal to {name}"
        chance = "; that may be chance" if abs(mean) < 2 * error else ""
        return f"{abs(points):.1f} points {'above' if points > 0 else 'BELOW'} {name}{chance}"

    def _repr_html_(self) -> str:
        header, *rows = self._rows()
        verdict = ", ".join(filter(None, [self.verdict(), self.comparison()]))
        table = html_table(header, rows, caption=f"{self.task}, {count(len(self.folds), 'fold')}, {verdict}")
        if self.errors is None or self.errors.confusion is None:
            return table
        return table + html_confusion(self.errors.confusion, caption="confusion matrix, all predictions")

    def _rows(self) -> list[list[str]]:
        names = list(self.mean)
        rows = {"mean": self.mean, "standard deviation": self.std, "all predictions": self.pooled}
        rows |= {f"{name}, mean": _mean(several) for name, several in self.baselines.items()}
        rows |= {f"fold {number}": scores for number, scores in enumerate(self.folds, 1)}
        return [
            ["", *names],
            *([title, *(format_score(scores.get(name)) for name in names)] for title, scores in rows.items() if scores),
        ]


def _mean(folds: Sequence[Mapping[str, float]]) -> Scores:
    shared = [name for name in folds[0] if all(name in fold for fold in folds)] if folds else []
    return {name: statistics.fmean(fold[name] for fold in folds) for name in shared}


@dataclass(frozen=True)
class _Fold(Splits):
    """The examples of a fold, and where its test data is."""

    numbers: Sequence[int] = ()
    """Of the test data in all data, from 0."""


def cross_validate(job: TaskJob, folds: int, run: Run, *, accept_changes: bool = False, notify: Notify) -> CrossValidation:
    """Train and test a task on each fold of its data; `OUT/fold-1`, ... have the networks, `OUT` scores and predictions."""
    if folds < 2:
        raise UsageError(f"{arg('folds', folds)} is too few: give 2 or more")
    if run.world_size > 1:
        how = f"start it without torchrun, or leave out {arg('folds')}"
        raise UsageError(f"{arg('folds', folds)} trains in one process, and there are {run.world_size}: {how}")
    if given := [name for name in ("dev", "test") if getattr(job.files, name) is not None]:
        raise UsageError(f"{arg('folds', folds)} divides the data itself: leave out {', '.join(map(arg, given))}")
    out = Path(job.out).expanduser()
    check_out_of_folds(out)
    _, config, _ = job.configured()
    splits = _splits(job, config, folds, run.seed, notify)
    _check(out, _stamp(job, splits, folds, run.seed))
    cache = out / LAYERS if job.cache is None else job.cache
    results: list[dict[str, Any]] = []
    stopped, is_first = None, True
    for number, data in enumerate(splits, 1):
        folder, begun = out / f"fold-{number}", time.monotonic()
        if not (folder / RESULT).exists():
            (out / PREDICTIONS).unlink(missing_ok=True)  # of a network that is no longer there
            display: RunDisplay = "summary" if is_first else "none"  # the settings of all folds are the same
            fold = dataclasses.replace(job, out=folder, data=data, cache=cache, display=display)
            told = notify if is_first else _log.debug
            if is_first:
                report(f"examples of fold {number} of {folds}, and the settings of all:")
            stopped, is_first = fold.train(run, accept_changes=accept_changes, notify=told).result.stopped_by, False
        if stopped is not None:
            break
        results.append(read_json(folder / RESULT))
        results[-1]["seconds"] = max(results[-1]["seconds"], time.monotonic() - begun)
        report(fold_line(number, folds, results[-1]))
    begun = time.monotonic()
    pooled, errors = ({}, None) if stopped is not None else _pool(job, out, splits, Path(cache), run)
    seconds = sum(float(each["seconds"]) for each in results) + time.monotonic() - begun
    if stopped is None and (out / RESULT).exists():  # finished before, and shown again
        seconds = max(seconds, float(read_json(out / RESULT).get("seconds", 0.0)))
    result = _result(out, results, pooled, seconds, stopped, errors)
    if stopped is None:
        write_text(out / RESULT, json.dumps(result.to_json(), indent=2, ensure_ascii=False) + "\n")
        shutil.rmtree(out / LAYERS, ignore_errors=True)
    return result


def fold_line(number: int, folds: int, result: Mapping[str, Any]) -> str:
    """Return a line about a finished fold.

    >>> fold_line(2, 10, {"main": "f1", "scores": {"test": {"f1": 0.5}}, "restarts": 1, "learned": True, "seconds": 3.2})
    'fold 2 of 10: test f1 50.0, 1 restart, 3 s'
    """
    main, restarts = str(result["main"]), result.get("restarts", 0)
    others = [
        f"{name} {100 * scores['test'][main]:.1f}"
        for name, scores in baseline_scores(result.get("baseline")).items()
        if main in scores.get("test", {})
    ]
    notes = [count(restarts, "restart")] if restarts else []
    notes += [] if result.get("learned", True) else ["learned nothing"]
    score, time = f"test {main} {100 * result['scores']['test'][main]:.1f}", f"{result['seconds']:,.0f} s"
    return f"fold {number} of {folds}: {', '.join([score, *others, *notes, time])}"


def _splits(job: TaskJob, config: TaskConfig, folds: int, seed: int, notify: Notify) -> list[_Fold]:
    """Return the examples of each fold: training, dev and test data."""
    task = task_class(job.task)
    examples, scored = job.read_training_data(config, notify)
    fewest = task.min_dev_examples(config)
    found = []
    for fold in split_plan(task, scored, config).folds(folds, seed):
        inside = set(fold)
        rest = [example for number, example in enumerate(scored) if number not in inside]
        if len(fold) < fewest or len(rest) <= fewest:
            raise UsageError(f"{job.files.train} has {len(scored)} examples, too few for {arg('folds', folds)}")
        kept, held = split_plan(task, rest, config).hold_out(seed, fewest=fewest)
        test, dev = [scored[number] for number in fold], [rest[number] for number in held]
        train = [rest[number] for number in kept] if scored is examples else job.without(examples, [*dev, *test])
        name = str(job.files.train)
        found.append(_Fold(train, dev, test, {"dev": name, "test": name}, texts=[*examples, *scored], numbers=fold))
    return found


def _stamp(job: TaskJob, splits: Sequence[Splits], folds: int, seed: int) -> dict[str, Any]:
    """What must be the same when finished folds are used again."""
    digest = hashlib.sha256()
    for data in splits:
        digest.update(
            "\n".join(map(repr, (*data.train, "", *data.dev, "", *(data.test or ())))).encode("utf-8", "surrogatepass")
        )
    options = {name: str(value) for name, value in job.options.items()}
    return {
        **{"folds": folds, "seed": seed, "task": task_class(job.task).kind, "data": digest.hexdigest()},
        **{"encoders": _names(job.encoders), "splitter": getattr(job.splitter, "name", None), "options": options},
    }


def _names(encoders: Encoders | None) -> Any:
    if encoders is None or isinstance(encoders, str | Path):
        return None if encoders is None else str(encoders)
    return model_fingerprint(encoders) if isinstance(encoders, Encoder) else [_names(each) for each in encoders]


def _check(out: Path, stamp: dict[str, Any]) -> None:
    """Write how the data is divided, or refuse a folder with other folds."""
    path = out / FOLDS
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(stamp, indent=2, ensure_ascii=False) + "\n")
        return
    old = read_json(path)
    if changed := [name for name, value in stamp.items() if old.get(name) != value]:
        what = f"has a cross-validation with other settings ({', '.join(changed)})"
        raise PolysemeError(f"{out} {what}: give the old ones to continue it, or choose another folder")


def _pool(job: TaskJob, out: Path, folds: Sequence[_Fold], cache: Path, run: Run) -> tuple[Scores, ErrorReport | None]:
    """Write the predictions for all examples, unless they are there; return the scores over all examples, and the errors.

    The scores are from counts if there are any, else from the predictions.
    """
    paths = [out / f"fold-{number}" for number in range(1, len(folds) + 1)]
    has_counts = all((path / SCORE_COUNTS).exists() for path in paths)
    errors = None if has_counts and (out / PREDICTIONS).exists() else _predict(job, paths, folds, cache, run)
    if errors is not None and not has_counts:
        return errors.scores, errors
    sums = sum(np.load(path / SCORE_COUNTS).sum(0) for path in paths)
    main = str(read_json(paths[0] / RESULT)["main"])
    return {main: float(task_class(job.task).score_from_counts(np.asarray(sums)))}, errors


def _predict(job: TaskJob, paths: Sequence[Path], folds: Sequence[_Fold], cache: Path, run: Run) -> ErrorReport:
    """Predict each fold with its network, write the predictions in the order of the data, and return what is wrong in them."""
    examples: list[Any] = []
    outputs: list[Any] = []
    rows: dict[int, dict[str, Any]] = {}
    for fold, (path, split) in enumerate(zip(paths, folds, strict=True), 1):
        task, test = load(path, device=run.device), split.test or ()
        data = task.data(test)
        data.cache(task.features, cache, superset=task.data(split.texts or ()))
        found = task.predict_data(data)
        for number, example, output in zip(split.numbers, test, found, strict=True):
            rows[number] = {"fold": fold, **task.example_json(example, output, Path(job.files.train).name)}
        examples += test
        outputs += found
    write_text(paths[0].with_name(PREDICTIONS), "".join(f"{json_text(rows[number])}\n" for number in sorted(rows)))
    return task.analyse_errors(examples, outputs, Path(job.files.train))


def _result(
    out: Path,
    results: Sequence[Mapping[str, Any]],
    pooled: Scores,
    seconds: float,
    stopped: str | None,
    errors: ErrorReport | None,
) -> CrossValidation:
    baselines: dict[str, list[Scores]] = {}
    for each in results:
        for name, scores in baseline_scores(each.get("baseline")).items():
            if "test" in scores:
                baselines.setdefault(name, []).append(dict(scores["test"]))
    first = results[0] if results else {}
    return CrossValidation(
        out,
        str(first.get("task", "")),
        str(first.get("main", "")),
        [dict(each["scores"]["test"]) for each in results],
        pooled,
        {name: several for name, several in baselines.items() if len(several) == len(results)},
        seconds,
        stopped,
        errors,
    )
