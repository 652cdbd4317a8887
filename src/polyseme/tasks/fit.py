"""Trains a task on examples: builds the network, computes frozen layers once, runs the trainer, scores the best network.

The same call resumes a run that was stopped. The folder has the best network by the dev data at any time, and at the end
`result.json`: scores, options, counts, time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from polyseme.base import format1
from polyseme.base.display import count
from polyseme.base.errors import PolysemeError, arg
from polyseme.base.files import atomic, read_json, write_text
from polyseme.base.free_memory import free_memory
from polyseme.base.progress import report
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.layer_cache import remove_caches
from polyseme.tasks.base import Task, default_splitter
from polyseme.tasks.baselines import hidden_by_accuracy, is_no_better_than_prior, score_baselines
from polyseme.tasks.classification_config import TableTaskConfig
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatches, TaskData
from polyseme.tasks.features import split_encoders
from polyseme.tasks.finished_run import finished_output
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.folder_check import HEAD, is_task
from polyseme.tasks.leakage import text_hashes, write_text_hashes
from polyseme.tasks.registry import TASKS
from polyseme.tasks.restarts import (
    Attempts,
    failure_message,
    no_better,
    no_restart,
    one_class_message,
    rare_classes,
    restart_message,
)
from polyseme.tasks.run_summary import RunSummary
from polyseme.tasks.training_report import TrainingReport
from polyseme.text.labelled.text_in_context import TextInContext
from polyseme.text.words import Splitter
from polyseme.training.checkpoint import CheckpointManager, stored_settings
from polyseme.training.config import TrainConfig
from polyseme.training.fit_loop import DivergedError
from polyseme.training.resume import ConfigValues
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)
RESULT = "result.json"
SCORE_COUNTS = "test-tallies.npy"
"""Counts of each test example, from which two systems are compared."""
RunDisplay = Literal["all", "summary", "none"]
"""What a run shows: settings and progress, only its settings, or neither. Restarts are always reported."""


@dataclass(frozen=True)
class TaskBuilder:
    """What is needed to build a task besides its training data."""

    task_type: type[Task]
    config: TaskConfig
    encoders: Sequence[Encoder] = ()
    splitter: Splitter | None = None
    """How raw text becomes words; None: as the first encoder splits it."""

    def build(self, examples: Sequence[Any], config: TaskConfig) -> Task:
        """Build a new network for training data."""
        return self.task_type.build(config, examples, self.encoders, splitter=self.splitter)


@dataclass(frozen=True)
class Splits:
    """Examples to train on, to choose the best network by, and to test it on."""

    train: Sequence[Any]
    dev: Sequence[Any]
    test: Sequence[Any] | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Files of the dev and the test data, for the report of errors."""
    texts: Sequence[Any] | None = None
    """Examples of all runs that share a cache of frozen layers; None: the cache is for this run alone."""
    dev_file: str | None = None
    """Dev data of its own; None: examples are held out, or come from no file."""


@dataclass(frozen=True)
class FitResult:
    """A trained task, and how the training went."""

    task: Task
    """The best network."""
    result: TrainOutput
    scores: dict[str, dict[str, float]]
    """By data set (dev, test); empty where the run was stopped."""
    report: TrainingReport | None = None
    """What to show a person; None where the run was stopped."""
    restarts: int = 0
    """How often the run began anew with a smaller learning rate, because it had learned nothing."""


def fit(
    builder: TaskBuilder,
    data: Splits,
    out: str | Path,
    config: FitConfig,
    run: Run,
    *,
    cache: str | Path | None = None,
    accept_changes: bool = False,
    display: RunDisplay = "all",
) -> FitResult:
    """Train a task, keep the best network by the dev data in `out`, and score it on the dev and test data.

    `cache`: a folder for frozen layers, which several runs can share; then those of all training data are computed, whatever
    the fraction. Default: in `out`.
    """
    out, kind = Path(out), builder.task_type
    attempts = Attempts.read(out / "run")
    if is_task(out) and not attempts.scores and not CheckpointManager(out / "run").steps():
        raise PolysemeError(f"{out} holds a trained task of another run: choose another folder, or remove it first")
    if is_task(out) and (found := read_json(out / HEAD).get("task")) != kind.kind:
        raise PolysemeError(f"{out} holds a trained task of another kind ({found}, not {kind.kind}): choose another folder")
    if not data.train or not data.dev:
        raise PolysemeError(f"{len(data.train)} training and {len(data.dev)} dev examples; both are needed")
    # each with its own context: neither reads the other
    train, dev = kind.with_context(data.train, builder.config), kind.with_context(data.dev, builder.config)
    task_config = kind.resolve_defaults(builder.config, train)  # from all data: a fraction may be too small to tell
    chosen = sample_fraction(train, config.train_fraction, run.seed)
    defaults = TASKS[kind.kind].training
    if config.epochs is None:
        config = config.replace(epochs=defaults.epochs(len(chosen)), min_steps=config.min_steps or defaults.min_steps)
    if config.batch_size is None:
        lengths = [] if defaults.batch_words is None else [len(example.words) for example in chosen]
        config = config.replace(batch_size=defaults.resolved_batch_size(lengths))
    folder = Path(cache) if cache is not None else out / "run"
    # with a shared cache all fractions and seeds take their rows from the layers of all training data
    whole = train if cache is not None and config.train_fraction < 1 else None
    splits = replace(data, train=chosen, dev=dev)
    session = _Session(builder, task_config, config, run, out, folder, cache is not None, splits, whole, display)
    if not accept_changes and (ended := session.finished_before(attempts)) is not None:
        return ended
    failures: list[_Trained] = []
    while True:
        rate = config.optim.learning_rate * attempts.learning_rate_factor
        try:
            fitted = session.train(attempts, accept_changes=accept_changes)
        except DivergedError as error:
            if failures and not attempts.may_restart:
                _log.warning("%s: the best network of the attempts before is kept", error.problem)
                session.end_diverged()
                return session.finish(*session.least_bad(failures, None, attempts))
            if not attempts.may_restart or run.world_size > 1:
                raise
            _log.warning("%s", restart_message(error.problem, rate))
            attempts = attempts.restart(0.0)
            continue
        if isinstance(fitted, FitResult):
            return fitted
        if fitted.result.ended is None:  # stopped: there is nothing to score yet
            return FitResult(load(out, device=run.device) if is_task(out) else fitted.task.eval(), fitted.result, {})
        trained = session.best(fitted, attempts)
        if not trained.failed or not attempts.may_restart or no_restart(fitted.result.steps, run.world_size):
            break
        if run.is_main_process:
            _log.warning("%s", restart_message(trained.no_better, rate))
        failures.append(trained)
        attempts = attempts.restart(trained.scores[trained.task.main_metric])
    if trained.failed and failures:
        trained, attempts = session.least_bad(failures, trained, attempts)
    return session.finish(trained, attempts)


@dataclass(frozen=True)
class _Fitted:
    """A network after training, and its data."""

    task: Task
    dev: TaskData
    result: TrainOutput


@dataclass(frozen=True)
class _Trained:
    """The best network of an attempt, and how well it does on the dev data."""

    task: Task
    result: TrainOutput
    scores: dict[str, float]
    outputs: list[Any]
    error: float
    """The least of the best network, as in training."""
    failed: bool
    """Whether it is no better than one answer for all examples."""

    @property
    def no_better(self) -> str:
        return no_better(self.task.main_metric, self.scores[self.task.main_metric], len(self.outputs))


@dataclass(frozen=True)
class _Session:
    """What the attempts of a run share."""

    builder: TaskBuilder
    task_config: TaskConfig
    config: FitConfig
    run: Run
    out: Path
    cache: Path
    shares_cache: bool
    """Whether other runs use it."""
    data: Splits
    whole: Sequence[Any] | None
    """All training data, where those of this run are a fraction and the cache is shared."""
    display: RunDisplay = "all"

    def finished_before(self, attempts: Attempts) -> FitResult | None:
        """Return the result of a finished run without building a network, whose n-grams alone can take half a minute.

        None: there is none with the same settings and data, or that cannot be told so early; `train` finds out.
        """
        out, builder, data = self.out, self.builder, self.data
        if self.run.world_size > 1 or not is_task(out) or not (out / RESULT).is_file():
            return None
        best = load(out, device=self.run.device)
        wide = {"wide_features": best.config.wide_features} if isinstance(best.config, TableTaskConfig) else {}
        splitter = builder.splitter or default_splitter(split_encoders(builder.encoders)[1])
        if best.config != self.task_config.replace(**wide) or best.splitter.name != splitter.name:
            return None
        config = self.config_of(attempts)
        sets = {"data": (data.train, best.data(data.train)), "dev": (data.dev, best.data(data.dev))}
        batches = self.batches(sets["data"][1], config)
        settings = _settings(best, builder, config) | _fingerprints(sets)
        try:
            now = Trainer(_train_config(config, batches), self.run).settings(settings)
            done = finished_output(out, now, RESULT, accept_changes=False)
        except PolysemeError:
            return None
        return None if done is None else self.finished(best, done)

    def finished(self, best: Task, done: TrainOutput) -> FitResult | None:
        """Return the result of a finished run and its network; None: `result.json` is of an earlier run, or of other data."""
        found = read_json(self.out / RESULT)
        scored = {"test_data": self.test_fingerprint(best), "settings": self.settings_fingerprint()}
        if any(found.get(name) != value for name, value in scored.items()):
            return None
        _log.warning("%s is trained; nothing to do", self.out)
        scores, warning = found["scores"], found.get("warning", "")
        counts = found.get("examples", {})
        report = TrainingReport(best.main_metric, scores, found.get("baseline"), None, best.layer_weights(), warning, counts)
        output = replace(done, **{name: found[name] for name in ("best_step", "steps", "ended")}, epochs=found.get("epochs"))
        return FitResult(best, output, scores, report, found.get("restarts", 0))

    def settings_fingerprint(self) -> str:
        """Return what changes with the settings and the data of the run in the folder, by its last checkpoint."""
        settings = json.dumps(stored_settings(self.out, {}), sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()[:16]

    def test_fingerprint(self, task: Task) -> str:
        """Return what changes with the test data; empty without any."""
        test = self.data.test
        return "" if test is None else _fingerprint(test, *_contexts(task.data(test)))

    def config_of(self, attempts: Attempts) -> FitConfig:
        """Return the config with the learning rate of the present attempt."""
        optim = self.config.optim
        return self.config.replace(optim=optim.replace(learning_rate=optim.learning_rate * attempts.learning_rate_factor))

    def batches(self, train: TaskData, config: FitConfig) -> ExampleBatches:
        """Return the batches of this process."""
        assert config.batch_size is not None
        run = self.run
        return ExampleBatches(train, size=config.batch_size, seed=run.seed, rank=run.rank, world_size=run.world_size)

    def train(self, attempts: Attempts, *, accept_changes: bool) -> _Fitted | FitResult:
        """Train a new network, or resume its training."""
        run, out, data = self.run, self.out, self.data
        config = self.config_of(attempts)
        run.seed_all()
        task = self.builder.build(data.train, self.task_config)
        task.to(run.device)
        train_data, dev_data = task.data(data.train), task.data(data.dev)
        batches = self.batches(train_data, config)
        is_new = not CheckpointManager(out / "run").steps() and not attempts.scores
        if run.is_main_process and is_new and self.display != "none":
            sets = {"train": train_data, "dev": dev_data} | ({} if data.test is None else {"test": task.data(data.test)})
            report(str(RunSummary(task, config, sets, batches.batches_per_epoch)))
        settings = _settings(task, self.builder, config) | _fingerprints(
            {"data": (data.train, train_data), "dev": (data.dev, dev_data)}
        )
        settings["dev_file"] = data.dev_file
        trainer = Trainer(_train_config(config, batches), run)
        if run.world_size == 1 and not is_new:
            now = trainer.settings(settings)
            done = finished_output(out, now, RESULT, accept_changes=accept_changes)
            if done is not None and is_task(out):
                found = self.finished(load(out, device=run.device), done)
                if found is not None:
                    return found
        shared = None if data.texts is None else task.data(data.texts)
        whole = None if self.whole is None else task.data(self.whole)
        train_data.cache(task.features, self.cache, superset=shared or whole)
        dev_data.cache(task.features, self.cache, superset=shared)
        free_memory()  # of the n-grams and the layers, much of it between blocks that stay
        if run.is_main_process:
            attempts.start()
        result = trainer.fit(
            task,
            batches,
            dev_data,
            out,
            settings=settings,
            accept_changes=accept_changes,
            show=self.display == "all",
        )
        return _Fitted(task, dev_data, result)

    def best(self, fitted: _Fitted, attempts: Attempts) -> _Trained:
        """Return the best network by the dev data."""
        if not is_task(self.out) and self.run.is_main_process:
            lost = "the best network was lost while it was written (a kill or a full disk); the last one is kept"
            _log.warning("%s: %s", self.out, lost)
            fitted.task.save(self.out)
        task, dev = load(self.out, device=self.run.device), self.data.dev
        outputs = task.predict_data(fitted.dev)
        scores = task.score(dev, outputs)
        error = task.selection_error(dev, outputs, scores)
        failed = is_no_better_than_prior(task, self.data.train, dev, outputs, scores)
        result = replace(fitted.result, best_step=attempts.kept_step or fitted.result.best_step)
        return _Trained(task, result, scores, outputs, error, failed)

    def end_diverged(self) -> None:
        """Note in the last checkpoint that the run is over, so that the same call does not train on."""
        manager = CheckpointManager(self.out / "run")
        checkpoint = manager.latest()
        if checkpoint is not None:
            checkpoint.values["progress"]["ended"] = "diverged"
            manager.write(checkpoint)

    def least_bad(self, failures: Sequence[_Trained], last: _Trained | None, attempts: Attempts) -> tuple[_Trained, Attempts]:
        """Return the best network of attempts that all failed, which the folder then has, and the attempts with it.

        `last`: that of the last attempt, which the folder has now; None: it diverged.
        """
        best = min([*failures, *([] if last is None else [last])], key=lambda each: each.error)  # the first of equal ones
        if best is last:
            return best, attempts
        if self.run.is_main_process:
            best.task.save(self.out)
        result = best.result if last is None else replace(last.result, best_step=best.result.best_step)
        return replace(best, result=result), attempts.keep(best.result)

    def finish(self, trained: _Trained, attempts: Attempts) -> FitResult:
        """Score the best network on the test data and beside baselines, and write the result."""
        run, out, data, best, result = self.run, self.out, self.data, trained.task, trained.result
        outputs, scores = trained.outputs, {"dev": trained.scores}
        last: tuple[str, Sequence[Any], list[Any]] = ("dev", data.dev, outputs)
        if data.test is not None:
            test = best.data(data.test)
            if self.shares_cache:  # of one run, test data is read once
                test.cache(best.features, self.cache, superset=None if data.texts is None else best.data(data.texts))
            outputs = best.predict_data(test)
            scores["test"], last = best.score(data.test, outputs), ("test", data.test, outputs)
            _write_counts(best.score_counts(data.test, outputs), out, run)
        baseline, warning = None, ""
        if trained.failed:
            reason = no_restart(result.steps, run.world_size)
            labels = [getattr(example, "label", None) for example in data.train]
            cause = rare_classes(labels, best.labels, best.main_metric)
            warning = failure_message(trained.no_better, len(attempts.scores), reason, cause)
        elif label := hidden_by_accuracy(best, data.train, data.dev, trained.outputs, trained.scores):
            warning = one_class_message(label)
        counts = {"train": len(data.train), "dev": len(data.dev), "test": len(data.test or ())}
        if run.is_main_process:
            sets = {"dev": data.dev} | ({} if data.test is None else {"test": data.test})
            baseline = score_baselines(best, data.train, sets)
            summary = _summary(best, result, scores, self.config, run) | {"examples": counts}
            summary |= {"baseline": baseline, "restarts": len(attempts.scores), "learned": not trained.failed}
            summary |= {"warning": warning} if warning else {}
            summary |= {"test_data": self.test_fingerprint(best), "settings": self.settings_fingerprint()}
            write_text_hashes(out, text_hashes(type(best), data.train))
            write_text(out / RESULT, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
            if not self.shares_cache:
                remove_caches(self.cache)
            if warning:
                _log.warning("%s", warning)
        errors = best.analyse_errors(last[1], last[2], data.names.get(last[0], last[0]))
        longer = _longer(result, TASKS[best.kind].training.min_steps)
        shown = TrainingReport(best.main_metric, scores, baseline, errors, best.layer_weights(), warning, counts, longer)
        return FitResult(best, result, scores, shown, len(attempts.scores))


def _longer(result: TrainOutput, min_steps: int) -> str:
    """How to train longer, where the run had few steps or its last network is the best."""
    if result.ended != "budget" or result.epochs is None:
        return ""
    if result.steps < min_steps:
        return f"only {count(result.steps, 'step')}; leave out {arg('epochs')}, and there are at least {min_steps}"
    if result.best_step == result.steps:
        return f"train longer ({arg('epochs', 2 * math.ceil(result.epochs))}), or label more data"
    return ""


def _write_counts(counts: np.ndarray | None, out: Path, run: Run) -> None:
    """Keep the counts of each test example."""
    if counts is not None and run.is_main_process:
        with atomic(out / SCORE_COUNTS) as part, part.open("wb") as file:
            np.save(file, counts)


def _settings(task: Task, builder: TaskBuilder, config: FitConfig) -> dict[str, Any]:
    """What must be the same when the run is resumed, besides the trainer's own settings."""
    return {
        "task": task.config,
        "fitting": ConfigValues(FitConfig, {name: value for name, value in config.to_dict().items() if name != "optim"}),
        "encoders": [model_fingerprint(encoder) for encoder in builder.encoders],
        "vocabulary": _fingerprint(task.features.words.words, task.labels),
        "splitter": [format1.old_name(format1.SPLITTERS, task.splitter.name), getattr(task.splitter, "fingerprint", None)],
    }


def _fingerprints(data: dict[str, tuple[Sequence[Any], TaskData]]) -> dict[str, str]:
    return {name: _fingerprint(examples, *_contexts(texts)) for name, (examples, texts) in data.items()}


def _train_config(config: FitConfig, batches: ExampleBatches) -> TrainConfig:
    """One evaluation at the end of each epoch, or as many where `min_steps` asks for more steps."""
    assert config.epochs is not None
    steps = max(batches.batches_per_epoch, -(-config.min_steps // config.epochs))
    return TrainConfig(
        steps=config.epochs * steps,
        eval_every=steps,
        patience=config.patience,
        optim=config.optim,
        log_every=max(steps // 2, 1),
    )


def sample_fraction(examples: Sequence[Any], fraction: float, seed: int) -> list[Any]:
    """Return a random fraction of the examples in their order; the same seed gives the same ones."""
    size = max(1, round(fraction * len(examples)))
    kept = np.sort(np.random.default_rng([seed, 5]).permutation(len(examples))[:size])
    return [examples[number] for number in kept.tolist()]


def _fingerprint(*parts: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for examples in parts:
        for example in examples:
            digest.update(format1.old_repr(example).encode("utf-8", "surrogatepass") + b"\n")
        digest.update(b"\n")
    return digest.hexdigest()


def _contexts(data: TaskData) -> list[list[Any]]:
    """The documents around the texts of the data, each once, and where each text begins in them; empty without any."""
    documents: dict[Any, int] = {}
    texts = [text for texts in data.texts for text in texts if isinstance(text, TextInContext)]
    positions = [(documents.setdefault(text.document, len(documents)), text.begin) for text in texts]
    return [list(documents), positions] if positions else []


def _summary(
    task: Task, result: TrainOutput, scores: dict[str, dict[str, float]], config: FitConfig, run: Run
) -> dict[str, Any]:
    """What `result.json` says of a run."""
    return {
        "task": task.kind,
        "main": task.main_metric,
        "scores": scores,
        "best_step": result.best_step,
        "steps": result.steps,
        "epochs": result.epochs,
        "seconds": round(result.seconds, 1),
        "ended": result.ended,
        "parameters": sum(weight.numel() for weight in task.parameters()),
        "seed": run.seed,
        "device": run.device.type,
        "precision": run.precision,
        "config": task.config.to_dict(),
        "fitting": config.to_dict(),
    }
