"""The trainer: trains any `Learner` on any `Batches`, and resumes by itself.

    out/                 the best model so far, loadable at any moment (the learner writes it)
    out/run/             checkpoints, log.jsonl, tensorboard/

Calling `fit` again with the same folder resumes from the last checkpoint: same batches, same random numbers, and on a CPU the
same weights to the last bit as a run that was never stopped. After each step things happen in one order (log line, evaluation,
checkpoint), and a checkpoint holds all that they changed; so a kill at any moment only repeats work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.lock import LOCK_NAME, lock_file
from polyseme.base.run import Run
from polyseme.base.signals import GracefulStop
from polyseme.training.base import Batches, Learner
from polyseme.training.config import TrainConfig
from polyseme.training.distributed import process_group
from polyseme.training.fit_loop import FitLoop
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.metrics_log import MetricsLog
from polyseme.training.optim import build_optimizer
from polyseme.training.prefetch import PrefetchedBatches
from polyseme.training.progress_bar import training_display
from polyseme.training.state import TrainingState

_log = logging.getLogger(__name__)
PREFETCHED = 3  # batches that are prepared ahead on a GPU


@dataclasses.dataclass(frozen=True)
class TrainOutput:
    """The state of a run after `fit`."""

    out: Path
    steps: int
    words: int
    seconds: float
    best: float | None
    """The best score; None without held-out data, or before the first evaluation."""
    best_step: int | None
    scores: dict[str, float]
    ended: str | None
    """budget, patience, gradients (they exploded) or diverged (an earlier attempt is kept);
    None: stopped by a signal, and the same call resumes the run."""
    stopped_by: str | None = None
    """The signal that stopped it: SIGINT or SIGTERM."""
    epochs: float | None = None
    """Passes over the data; None: not known."""
    first_step: int = dataclasses.field(default=0, compare=False)
    """The step from which this call trained on."""

    @property
    def was_finished(self) -> bool:
        """Whether the run in the folder was at its end before this call."""
        return self.ended is not None and self.first_step == self.steps


class Trainer:
    """Trains, writes checkpoints, resumes.

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
        show: bool = True,
    ) -> TrainOutput:
        """Train to the end of the budget, or resume the run in `out`.

        `dev` goes to the learner's `evaluate`; with None the latest model is kept instead of the best. `settings` are further
        configs and JSON values that define the run (the model's config, the fingerprint of the corpus): they too must be the
        same when it is resumed, unless `accept_changes`. `show`: show the progress.
        """
        run, out = self.run, Path(out)
        learner.to(run.device)
        batches = PrefetchedBatches(train, learner.prepare, prefetch=PREFETCHED if run.device.type == "cuda" else 0)
        optimizer = build_optimizer(self.config.optim, learner, learner.lr_multipliers())
        state = TrainingState(learner, optimizer, batches, IntervalMetrics(run.device), run)
        with (
            lock_run(out) if run.is_main_process else contextlib.nullcontext(),
            contextlib.closing(batches),
            process_group(run) as processes,
            GracefulStop(repeat_stops_now=run.world_size == 1) as stop,
            MetricsLog(out / "run" if run.is_main_process else None) as metrics_log,
        ):
            loop = FitLoop(self.config, state, processes, dev=dev, out=out, metrics_log=metrics_log)
            try:
                with stop.interruptible():  # it may time steps, and has nothing to lose
                    loop.start(self.settings(settings or {}), accept_changes=accept_changes)
                first_step = loop.progress.step
                with training_display(loop.status, show=show and run.is_main_process) as display:
                    while loop.progress.ended is None and not loop.stopping:
                        loop.advance(stop, display)
            except KeyboardInterrupt as error:  # before the first step, or within one that took long
                raise KeyboardInterrupt(loop.stop_note()) from error
            return self._output(loop, stop.name, first_step)

    def settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that must be the same when a run is resumed; `settings`: those of `fit`."""
        run = {
            "seed": self.run.seed,
            "world_size": self.run.world_size,
            "precision": self.run.precision,
            "device": self.run.device.type,
        }
        return {"config": self.config, "run": run, "settings": settings}

    def _output(self, loop: FitLoop, signal: str | None, first_step: int) -> TrainOutput:
        progress = loop.progress
        stopped = signal or "SIGTERM" if progress.ended is None else None
        if stopped is not None and self.run.is_main_process:
            _log.warning("stopped by %s at step %d; the same command resumes the run", stopped, progress.step)
        return TrainOutput(
            out=loop.out,
            steps=progress.step,
            words=progress.words,
            seconds=progress.seconds,
            best=progress.best,
            best_step=progress.best_step,
            scores=progress.scores,
            ended=progress.ended,
            stopped_by=stopped,
            epochs=round(loop.epoch, 4),
            first_step=first_step,
        )


def lock_run(out: Path) -> contextlib.AbstractContextManager[bool]:
    """Lock a run for one process: two runs in one folder would overwrite each other's models."""
    busy = f"another process is training in {out}: wait until it is done, or choose another folder"
    return lock_file(out / "run" / LOCK_NAME, busy=busy)
