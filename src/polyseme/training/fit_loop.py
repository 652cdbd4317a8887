"""One sitting of a run: from its start or its last checkpoint to its end or a stop."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.base.signals import GracefulStop
from polyseme.training.budget import Budget, Timing, budget_from_config, budget_from_minutes, extend_budget
from polyseme.training.checkpoint import Checkpoint, CheckpointManager
from polyseme.training.config import BUDGETS, DEV_DATA, TrainConfig, check_resume_settings
from polyseme.training.distributed import SingleProcess
from polyseme.training.metrics_log import MetricsLog
from polyseme.training.optim import learning_rate
from polyseme.training.progress_bar import UpdateProgressBar
from polyseme.training.state import Progress, TrainingState
from polyseme.training.step_runner import StepRunner

_log = logging.getLogger(__name__)
SECONDS, WRITING = 120.0, 50.0  # between checkpoints, unless the config says otherwise: at least, and in times of writing one

_OLD = {"waited": "wait_count"}


class DivergedError(PolysemeError):
    """The loss, the gradient or a weight is no longer a number."""


class FitLoop:
    """The state of a run in memory, and the order of things after each step."""

    budget: Budget

    def __init__(
        self,
        config: TrainConfig,
        state: TrainingState,
        processes: SingleProcess,
        *,
        dev: Any,
        out: Path,
        metrics_log: MetricsLog,
    ) -> None:
        self.config, self.state, self.processes, self.dev, self.out = config, state, processes, dev, out
        self.progress = Progress()
        self.stopping = False
        self._metrics_log = metrics_log
        self._step_runner = StepRunner(config, state, processes)
        self._checkpoints = CheckpointManager(out / "run")
        self._written: tuple[int, float] = (-1, time.monotonic())  # the last checkpoint: its step, and when
        self._writing = 0.0  # the seconds that it took
        self._mark = time.monotonic()
        self._evaluation = 0.0  # the seconds that the last one took
        self._evaluations = 0.0  # those of all
        self._timed: tuple[int, float] | None = None  # step and seconds without evaluations, where a budget may be lengthened
        # A CPU alone has each loss at once; elsewhere waiting for it would cost every step.
        self._check_each = state.run.device.type == "cpu" and state.run.world_size == 1

    @property
    def done(self) -> int:
        """How far the run is, in the budget's unit."""
        return self.budget.done(self.progress.step, self.progress.words)

    def begin(self, settings: dict[str, Any], *, accept_changes: bool) -> None:
        """Start the run, or go on with the one in the folder."""
        self._settings = settings
        found: Checkpoint | None = None
        if self.state.run.is_main_process:
            self._checkpoints.clean()
            found = self._checkpoints.newest()
        found = self.processes.broadcast(found)
        if found is not None:
            self._resume(found, accept_changes=accept_changes)
            return
        self.state.run.seed_all()
        self.budget = self._make_budget()
        self._metrics_log.open()
        self._checkpoint()  # keeps the budget, and shows before the first step that the disk has room
        self._timed = None if self.config.minutes is None else (0, self.progress.seconds)

    def _make_budget(self) -> Budget:
        budget = budget_from_config(self.config, self.state.batches.words_per_epoch)
        if budget is None:
            rate = self._step_runner.measure(self.dev, self.out / "run")
            self._evaluation = rate.evaluation
            budget = budget_from_minutes(self.config, rate)
            _log.info("%g minutes are %d steps at the measured rate", self.config.minutes, budget.total)
        return budget

    def _resume(self, found: Checkpoint, *, accept_changes: bool) -> None:
        values, run = found.values, self.state.run
        changed = check_resume_settings(values["settings"], self._settings, accept_changes=accept_changes)
        if values["settings"]["run"]["device"] != run.device.type:
            _log.warning(
                "the run began on %s; on %s it rounds differently", values["settings"]["run"]["device"], run.device.type
            )
        tensors, own = found.tensors, f"rank{run.rank}/"
        # the memory of one optimizer means nothing to another
        self.state.restore_shared(tensors, optimizer="config.optim.optimizer" not in changed)
        carried = {name.removeprefix(own): value for name, value in tensors.items() if name.startswith(own)}
        self.progress = Progress(**{_OLD.get(name, name): value for name, value in values["progress"].items()})
        if DEV_DATA in changed:  # the next evaluation is the first by this data
            self.progress = dataclasses.replace(self.progress, best=None, best_step=None, wait_count=0, scores={})
        self.budget = Budget.from_dict(values["plan"])
        self.state.restore_own(carried, values["ranks"][run.rank])
        if any(f"config.{name}" in changed for name in BUDGETS):
            self.progress.ended = None
            self.budget = self._make_budget()
        elif changed and self.progress.ended is not None:
            self._reopen(changed)
        self._step_runner.rewind()
        self._written = (found.step, time.monotonic())
        self._mark = time.monotonic()
        if self.progress.ended is None:
            self._metrics_log.open(size=values["log"], step=found.step)
            _log.info("going on from step %d", found.step)

    def _reopen(self, changed: dict[str, str]) -> None:
        """Let a run that is over go on, if it was out of a patience that is longer now."""
        patience, wait_count = self.config.patience, self.progress.wait_count
        if self.progress.ended == "patience" and (patience is None or wait_count < patience):
            self.progress.ended = None
            return
        told = ", ".join(name.removeprefix("config.") for name in changed)
        raise PolysemeError(
            f"the run in this folder is over, and {told} as given now would change nothing in it: give a longer budget too, "
            "or choose another folder"
        )

    def advance(self, stop: GracefulStop, update_bar: UpdateProgressBar) -> None:
        """One step, and what is due after it."""
        before = self.done
        self._rate = learning_rate(self.config.optim, before, self.budget.total)
        own_words = self._step_runner.step(self._rate, before / self.budget.total)
        stop.listen()
        late = time.monotonic() - self._written[1] > self._between_checkpoints and self.state.run.is_main_process
        words, stops, lates = self.processes.sum_over_processes([own_words, stop.name is not None, late])
        self.progress.step += 1
        self.progress.words += int(words)
        self.stopping = stops > 0
        self._tick(training=True)
        update_bar(self.done, self.budget.total)
        self._after_step(before, checkpoint=lates > 0 or self.stopping, update_bar=update_bar)

    def _after_step(self, before: int, *, checkpoint: bool, update_bar: UpdateProgressBar) -> None:
        config, step = self.config, self.progress.step
        over = self.done >= self.budget.total
        log = over or step % config.log_every == 0
        if config.eval_every is None:
            evaluate = over or self.budget.passes_evaluation(before, self.done)
        else:
            evaluate = over or step % config.eval_every == 0
        checkpoint |= config.checkpoint_every is not None and step % config.checkpoint_every == 0
        timed = not over and self._timed is not None and self.budget.passes_timing_check(before, self.done)
        if self._check_each or log or evaluate or checkpoint or timed:
            self._check()
        if log:
            self._write_line(update_bar)
        if evaluate and self.dev is not None:
            self._evaluate()
        if timed and self.progress.ended is None:
            checkpoint |= self._extend_budget()  # and keeps it
        if over:
            self.progress.ended = "budget"
        elif self.progress.ended is not None and not log:  # out of patience: the last steps have their line too
            self._write_line(update_bar)
        if checkpoint or self.progress.ended is not None:
            self._checkpoint()

    def _write_line(self, update_bar: UpdateProgressBar) -> None:
        line = self.state.interval.summary(self.processes)
        epoch = self.progress.words / max(self.state.batches.words_per_epoch, 1)
        line |= {"learning_rate": self._rate, "epoch": epoch, "seconds": round(self.progress.seconds, 3)}
        self._metrics_log.write(self.progress.step, "train", line)
        update_bar(self.done, self.budget.total, line)
        self.state.interval.clear()

    def _evaluate(self) -> None:
        begun = self.progress.seconds
        scores, progress = self._step_runner.evaluate(self.dev), self.progress
        score = scores[self.state.learner.score_name]
        if not math.isfinite(score):
            raise self._diverged(f"{self.state.learner.score_name} on the held-out data is {score}")
        better = progress.best is None or score < progress.best
        if better:
            progress.best, progress.best_step, progress.scores, progress.wait_count = score, progress.step, scores, 0
            self._save_model()
        else:
            progress.wait_count += 1
            if self.config.patience is not None and progress.wait_count >= self.config.patience:
                progress.ended = "patience"
        self._tick(training=False)
        self._evaluation = progress.seconds - begun
        self._evaluations += self._evaluation
        self._metrics_log.write(progress.step, "dev", {**scores, "best": better, "seconds": round(progress.seconds, 3)})

    def _save_model(self) -> None:
        """Keep the model as it is now, in the folder of the run."""
        if not self.state.run.is_main_process:
            return
        try:
            self.state.learner.save(self.out)
        except PolysemeError as error:
            kept = f"the checkpoint of step {max(self._written[0], 0)} is kept"
            raise PolysemeError(
                f"the model could not be saved in {self.out} ({error}); {kept}: when that is mended, the same command goes on"
            ) from error

    def _extend_budget(self) -> bool:
        """Lengthen a budget in minutes where the steps since the last look were quicker than measured."""
        assert self._timed is not None
        (step, seconds), progress = self._timed, self.progress
        self._timed = (progress.step, progress.seconds - self._evaluations)
        one = max(self._timed[1] - seconds, 1e-9) / (progress.step - step)
        rate = Timing(step=one, evaluation=self._evaluation, spent=progress.seconds)
        budget: Budget = self.processes.broadcast(extend_budget(self.config, self.budget, progress.step, rate))
        if budget == self.budget:
            return False
        _log.info("%g minutes are %d steps, more than measured at first", self.config.minutes, budget.total)
        self.budget = budget
        return True

    def _checkpoint(self) -> None:
        if self._written[0] == self.progress.step:
            return
        began = time.monotonic()
        if not self.state.finite():
            raise self._diverged("a weight is no longer a number")
        if self.dev is None and self.progress.step:
            self._save_model()
        self._tick(training=False)
        owns = self.processes.gather(self.state.own())
        if self.state.run.is_main_process:
            tensors = self.state.shared()
            for rank, (carried, _) in enumerate(owns):
                tensors |= {f"rank{rank}/{name}": value for name, value in carried.items()}
            values = {
                "settings": self._settings,
                "plan": self.budget.to_dict(),
                "progress": dataclasses.asdict(self.progress),
                "ranks": [values for _, values in owns],
                "log": self._metrics_log.size(),
            }
            self._checkpoints.write(Checkpoint(self.progress.step, tensors, values))
        self._written = (self.progress.step, time.monotonic())
        self._writing = self._written[1] - began
        self._tick(training=False)

    @property
    def _between_checkpoints(self) -> float:
        """Seconds until the next checkpoint is due."""
        given = self.config.checkpoint_seconds
        return max(SECONDS, WRITING * self._writing) if given is None else given

    def _check(self) -> None:
        finite = self.state.interval.finite(self.processes)
        self._tick(training=True)  # on a GPU the check waited for the steps before
        if not finite:
            raise self._diverged("the loss or its gradient is no longer a number")
        if self.state.interval.stuck():
            raise self._diverged(f"no gradient could be followed, all are longer than {self.config.optim.skip_norm}")

    def _diverged(self, what: str) -> DivergedError:
        optim, kept = self.config.optim, max(self._written[0], 0)
        clip = "clip_norm (it is off)" if optim.clip_norm is None else f"a clip_norm below {optim.clip_norm:g}"
        precision = ", precision fp32" if self.state.run.precision == "bf16" else ""
        return DivergedError(
            f"{what} at step {self.progress.step}; the last good checkpoint, of step {kept}, is kept in {self.out / 'run'}: "
            f"lower the learning rate (it is {optim.learning_rate:g}), or try a longer warmup, {clip}{precision}, "
            "and accept the changes (--accept-changes) to go on from there"
        )

    def _tick(self, *, training: bool) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._mark
        if training:
            self.state.interval.seconds += now - self._mark
        self._mark = now
