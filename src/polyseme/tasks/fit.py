"""From examples to a trained task: build the network, compute frozen layers once, hand both to the loop.

Calling it again with the same folder goes on where it stopped. The folder holds the best network by the dev data at any
moment, and `result.json` at the end: scores, options, counts, time.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base import format1
from polyseme.base.errors import PolysemeError
from polyseme.base.files import atomic, write_text
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.tasks.base import Task
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatches, TaskData
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import is_task, load, save
from polyseme.text.labelled.text_in_context import TextInContext
from polyseme.text.words import Splitter
from polyseme.training.checkpoint import CheckpointManager
from polyseme.training.config import TrainConfig
from polyseme.training.resume import ConfigValues
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)
RESULT = "result.json"
TALLIES = "test-tallies.npy"
"""Counts of each test example, from which two systems are compared."""


@dataclass(frozen=True)
class FitResult:
    """A trained task, and how it came about."""

    task: Task
    """The best network, ready to answer."""
    result: TrainOutput
    scores: dict[str, dict[str, float]]
    """By the name of the data: dev, test; none where the run was stopped on the way."""


def fit(
    kind: type[Task],
    train: Sequence[Any],
    dev: Sequence[Any],
    out: str | Path,
    config: TaskConfig,
    fitting: FitConfig,
    run: Run,
    *,
    encoders: Sequence[Encoder] = (),
    cut: Splitter | None = None,
    test: Sequence[Any] | None = None,
    cache: str | Path | None = None,
    accept_changes: bool = False,
) -> FitResult:
    """Train a task on examples, keep the best network by `dev` in `out`, and score it on `dev` and `test`.

    `cache`: where frozen layers are kept; several runs can share it, so those of all training data are computed, whatever
    the share. Not given: in `out`.
    """
    out = Path(out)
    if is_task(out) and not CheckpointManager(out / "run").steps():
        raise PolysemeError(f"{out} holds a trained task of another run: choose another folder, or remove it first")
    if not train or not dev:
        raise PolysemeError(f"{len(train)} examples to train on and {len(dev)} to choose by; both are needed")
    train, dev = kind.in_context(train, config), kind.in_context(dev, config)  # each by itself: none reads the other
    config = kind.resolve_defaults(
        config, train
    )  # what all the data says holds for a share of it, which may be too little to tell
    chosen = _sample_fraction(train, fitting.train_fraction, run.seed)
    run.seed_all()
    task = kind.build(config, chosen, encoders, cut=cut)
    task.to(run.device)
    place = Path(cache) if cache is not None else out / "run"
    data, judged = task.data(chosen), task.data(dev)
    # with a shared cache all shares and seeds take their rows from the layers of the whole
    data.cache(task.features, place, among=task.data(train) if cache is not None and fitting.train_fraction < 1 else None)
    judged.cache(task.features, place)
    batches = ExampleBatches(data, size=fitting.batch_size, seed=run.seed, rank=run.rank, world_size=run.world_size)
    settings = {
        "task": task.config,
        "fitting": ConfigValues(FitConfig, {name: value for name, value in fitting.to_dict().items() if name != "optim"}),
        "encoders": [model_fingerprint(encoder) for encoder in encoders],
        "data": _fingerprint(chosen, *_contexts(data)),
        "dev": _fingerprint(dev, *_contexts(judged)),
        "vocabulary": _fingerprint(task.features.words.words, task.labels),
        "splitter": [format1.old_splitter(task.splitter.name), getattr(task.splitter, "fingerprint", None)],
    }
    result = Trainer(_loop(fitting, batches), run).fit(
        task, batches, judged, out, settings=settings, accept_changes=accept_changes
    )
    if result.ended is None:  # stopped on the way: there is nothing to judge yet
        return FitResult(load(out, device=run.device) if is_task(out) else task.eval(), result, {})
    if not is_task(out) and run.is_main_process:
        _log.warning("%s: its best network was lost when it was written, by a kill or a full disk; the last one is kept", out)
        save(task, out)
    best = load(out, device=run.device)
    scores = {"dev": best.score(dev, best.answer(judged))}
    if test is not None:
        asked = best.data(test)
        asked.cache(best.features, place)
        answers = best.answer(asked)
        scores["test"] = best.score(test, answers)
        score_counts = best.score_counts(test, answers)
        if score_counts is not None and run.is_main_process:
            with atomic(out / TALLIES) as part, part.open("wb") as file:
                np.save(file, score_counts)
    if run.is_main_process:
        counts = {"train": len(chosen), "dev": len(dev), "test": len(test or ())}
        told = _told(best, result, scores, fitting, run) | {"examples": counts}
        write_text(out / RESULT, json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    return FitResult(best, result, scores)


def _loop(fitting: FitConfig, batches: ExampleBatches) -> TrainConfig:
    """An evaluation at the end of each epoch, or as many of them where there are more steps."""
    steps = max(batches.batches_per_epoch, -(-fitting.min_steps // fitting.epochs))
    return TrainConfig(
        steps=fitting.epochs * steps,
        eval_every=steps,
        patience=fitting.patience,
        optim=fitting.optim,
        log_every=max(steps // 2, 1),
    )


def _sample_fraction(examples: Sequence[Any], share: float, seed: int) -> list[Any]:
    """Some of the examples, the same for the same seed; their order stays."""
    count = max(1, round(share * len(examples)))
    kept = np.sort(np.random.default_rng([seed, 5]).permutation(len(examples))[:count])
    return [examples[place] for place in kept.tolist()]


def _fingerprint(*parts: Sequence[Any]) -> str:
    whole = hashlib.sha256()
    for examples in parts:
        for example in examples:
            whole.update(format1.old_repr(example).encode("utf-8", "surrogatepass") + b"\n")
        whole.update(b"\n")
    return whole.hexdigest()


def _contexts(data: TaskData) -> list[list[Any]]:
    """What stands around the texts of the data, each once, and where each text stands in it; nothing where nothing does."""
    documents: dict[Any, int] = {}
    texts = [text for texts in data.texts for text in texts if isinstance(text, TextInContext)]
    places = [(documents.setdefault(text.document, len(documents)), text.begin) for text in texts]
    return [list(documents), places] if places else []


def _told(task: Task, result: TrainOutput, scores: dict[str, dict[str, float]], fitting: FitConfig, run: Run) -> dict[str, Any]:
    """What `result.json` tells of a run."""
    return {
        "task": task.kind,
        "main": task.main_metric,
        "scores": scores,
        "best_step": result.best_step,
        "steps": result.steps,
        "seconds": round(result.seconds, 1),
        "ended": result.ended,
        "parameters": sum(weight.numel() for weight in task.parameters()),
        "seed": run.seed,
        "device": run.device.type,
        "precision": run.precision,
        "config": task.config.to_dict(),
        "fitting": fitting.to_dict(),
    }
