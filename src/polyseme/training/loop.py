"""The loop, the only one: it trains any `Learner` on any `Batches`, and resumes by itself.

    out/                 the best model so far, loadable at any moment (the learner writes it)
    out/run/             checkpoints, log.jsonl, tensorboard/

Calling `fit` again with the same folder goes on where the last checkpoint was: same batches, same random numbers, on a CPU
the same weights to the bit as a run that was never stopped. After each step things happen in one order (log line, evaluation,
checkpoint), and a checkpoint holds all that they changed; so a kill at any moment only repeats work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.run import Run
from polyseme.training.base import Batches, Learner
from polyseme.training.config import TrainConfig
from polyseme.training.distributed import joined
from polyseme.training.interval import Interval
from polyseme.training.lock import alone_in
from polyseme.training.optim import build_optimizer
from polyseme.training.prepared import Prepared
from polyseme.training.record import Record
from polyseme.training.screen import screen
from polyseme.training.session import Session
from polyseme.training.signals import StopSignal
from polyseme.training.state import Parts

_log = logging.getLogger(__name__)
AHEAD = 3  # batches that are made ready before their step, where a GPU computes


@dataclasses.dataclass(frozen=True)
class Result:
    """How a run stands after `fit`."""

    out: Path
    steps: int
    words: int
    seconds: float
    best: float | None
    """The best score; None without held-out data, or before the first evaluation."""
    best_step: int | None
    scores: dict[str, float]
    """All numbers of the best evaluation."""
    ended: str | None
    """budget, patience, or None: stopped on the way by a signal, and the same call goes on."""
    stopped_by: str | None = None
    """The signal that stopped it: SIGINT or SIGTERM."""


class Trainer:
    """Trains, writes, resumes.

    >>> trainer = Trainer(TrainConfig(steps=1000), Run(seed=1))  # then: trainer.fit(learner, train, dev, Path("model"))
    """

    def __init__(self, config: TrainConfig, run: Run) -> None:
        self.config, self.run = config, run

    def fit(
        self,
        learner: Learner,
        train: Batches,
        dev: Any,
        out: Path,
        *,
        settings: Mapping[str, Any] | None = None,
        accept_changes: bool = False,
    ) -> Result:
        """Train to the end of the budget, or go on with the run in `out`.

        `dev` goes to the learner's `evaluate`; with None the newest model is kept instead of the best. `settings` are
        further JSON values that make the run what it is (the model's config, the corpus's fingerprint): they too must be
        the same when it is resumed, unless `accept_changes`.
        """
        run, out = self.run, Path(out)
        learner.to(run.device)
        batches = Prepared(train, learner.prepare, ahead=AHEAD if run.device.type == "cuda" else 0)
        optimizer = build_optimizer(self.config.optim, learner, learner.paces())
        parts = Parts(learner, optimizer, batches, Interval(run.device), run)
        with (
            alone_in(out / "run") if run.first else contextlib.nullcontext(),
            contextlib.closing(batches),
            joined(run) as ranks,
            StopSignal(patient=run.ranks > 1) as stop,
            Record(out / "run" if run.first else None) as record,
        ):
            session = Session(self.config, parts, ranks, dev=dev, out=out, record=record)
            session.begin(self._settings(settings or {}), accept_changes=accept_changes)
            with screen(session.plan.total, session.done, show=run.first) as draw:
                while session.progress.ended is None and not session.stopping:
                    session.advance(stop, draw)
            return self._result(session, stop.name)

    def _settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        run = {
            "seed": self.run.seed,
            "ranks": self.run.ranks,
            "precision": self.run.precision,
            "device": self.run.device.type,
        }
        plain: dict[str, Any] = json.loads(json.dumps({"config": self.config.to_dict(), "run": run, "settings": settings}))
        return plain

    def _result(self, session: Session, signal: str | None) -> Result:
        progress = session.progress
        stopped = signal or "SIGTERM" if progress.ended is None else None
        if stopped is not None and self.run.first:
            _log.warning("stopped by %s at step %d; the same command goes on from there", stopped, progress.step)
        return Result(
            out=session.out,
            steps=progress.step,
            words=progress.words,
            seconds=progress.seconds,
            best=progress.best,
            best_step=progress.best_step,
            scores=progress.scores,
            ended=progress.ended,
            stopped_by=stopped,
        )
