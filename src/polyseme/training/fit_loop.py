"""The training loop: from the start of a run or its last checkpoint to its end or a stop, step by step."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from pathlib import Path
from typing import Any

from polyseme.base import format1
from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import report
from polyseme.base.signals import GracefulStop
from polyseme.training.asgd import averaged_weights
from polyseme.training.budget import (
    MANY_CORRECTIONS,
    Budget,
    Timing,
    budget_from_config,
    budget_from_minutes,
    is_large_correction,
    reach_of_minutes,
    revise_budget,
)
from polyseme.training.checkpoint import Checkpoint, CheckpointManager
from polyseme.training.config import BUDGETS, TrainConfig
from polyseme.training.distributed import SingleProcess
from polyseme.training.metrics_log import MetricsLog
from polyseme.training.optim import scheduled_learning_rate
from polyseme.training.progress_bar import Display
from polyseme.training.resume import DEV_DATA, check_resume_settings, plain_settings, translate_settings
from polyseme.training.run_status import RunStatus
from polyseme.training.setting_names import option_names
from polyseme.training.state import Progress, TrainingState
from polyseme.training.step_runner import StepRunner

_log = logging.getLogger(__name__)
CHECKPOINT_SECONDS = 30.0  # between checkpoints, unless the config says otherwise
CHECKPOINT_COST = 50.0  # and at least this many times as long as writing one takes
DISPLAY_SECONDS = 1.0  # between losses that are shown before they are logged; on a GPU each of them waits for the steps before


class DivergedError(PolysemeError):
    """The loss, a gradient or a weight is not finite."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}")
        self.problem = problem


class FitLoop:
    """A run in memory, and the order of things after each step."""

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
        self._steps = StepRunner(config, state, processes)
        self._steps.stop_note = self.stop_note
        self._checkpoints = CheckpointManager(out / "run")
        self._last_checkpoint: tuple[int, float] = (-1, time.monotonic())  # its step, and when it was written
        self._checkpoint_seconds = 0.0  # that writing it took
        self._clock = time.monotonic()
        self._evaluation_seconds = 0.0  # of the last evaluation
        self._all_evaluation_seconds = 0.0
        self._loss_shown = self._clock  # when a loss was shown last
        self._loss_sums = (0.0, 0)  # since the last evaluation, without what the interval has: loss times words, and words
        self._status: RunStatus | None = None
        self._timed: tuple[int, float] | None = None  # step and seconds without evaluations where steps were last timed
        self._told_totals: list[int] = []  # of a budget in minutes, as they were reported
        # On a CPU alone each loss is there at once; elsewhere waiting for it would slow every step down.
        self._check_each_step = state.run.device.type == "cpu" and state.run.world_size == 1

    @property
    def done(self) -> int:
        """How far the run is, in the budget's unit."""
        return self.budget.done(self.progress.step, self.progress.words)

    @property
    def status(self) -> RunStatus:
        """Where the run stands; the loop keeps it up to date."""
        if self._status is None:
            name, best = self.state.learner.shown_score, self.progress.scores
            self._status = RunStatus(self.budget.total, self.done, name, self.config.patience, best=best.get(name))
            self._status.prefers_later = self.state.learner.prefers_later
            if self.config.eval_every is None:
                self._status.evaluations = self.budget.evaluations * self._evaluation_seconds
        return self._status

    def stop_note(self) -> str:
        """What is kept of a run that is stopped within a step."""
        step = self._last_checkpoint[0]
        if step < 1:
            return "stopped before anything was saved"
        return f"stopped after step {self.progress.step:,}; the same command resumes the run from step {step:,}"

    def start(self, settings: dict[str, Any], *, accept_changes: bool) -> None:
        """Start the run, or resume the one in the folder."""
        self._settings: dict[str, Any] = plain_settings(settings)
        self._option_names = option_names(settings)
        checkpoint: Checkpoint | None = None
        seen = self.processes.gather(self._checkpoints.steps()[:1])
        if self.state.run.is_main_process:
            self._checkpoints.clean()
            self._checkpoints.wait_for(seen)
            checkpoint = self._checkpoints.latest()
            if checkpoint is not None and checkpoint.format == 1:
                checkpoint.values["settings"] = translate_settings(checkpoint.values["settings"], settings)
                checkpoint.values["progress"] = format1.translate("Progress", checkpoint.values["progress"])
        checkpoint = self.processes.broadcast(checkpoint)
        if checkpoint is not None:
            self._resume(checkpoint, accept_changes=accept_changes)
            return
        self.state.run.seed_all()
        self.budget = self._make_budget()
        self._metrics_log.open()
        self._checkpoint()  # keeps the budget, and shows before the first step that there is space on the disk
        self._watch_minutes()

    def _watch_minutes(self) -> None:
        """Begin to time steps, as a budget in minutes may be revised."""
        self._timed = (self.progress.step, self.progress.seconds - self._all_evaluation_seconds)

    def _make_budget(self) -> Budget:
        """The budget of the config; of a run that is resumed with a larger one, from its first step on."""
        budget, progress = budget_from_config(self.config, self.state.batches.words_per_epoch), self.progress
        if budget is None:
            timing = self._steps.measure(self.dev, self.out / "run")
            self._evaluation_seconds = timing.evaluation
            timing = dataclasses.replace(timing, spent=timing.spent + progress.seconds)
            budget = budget_from_minutes(self.config, timing)
            budget = budget.replace(total=progress.step + budget.total)
            if self.state.run.is_main_process:
                _log.warning("%s", reach_of_minutes(self.config, budget, timing, self.state.batches.words_per_epoch))
        elif budget.done(progress.step, progress.words) >= budget.total:
            name = next(name for name in BUDGETS if getattr(self.config, name) is not None)
            done = f"this run has done {progress.step:,} steps and {progress.words:,} words already"
            raise PolysemeError(f"{arg(name, getattr(self.config, name))} leaves nothing to train: {done}; give more")
        return budget

    def _resume(self, checkpoint: Checkpoint, *, accept_changes: bool) -> None:
        values, run = checkpoint.values, self.state.run
        changed = check_resume_settings(
            values["settings"], self._settings, accept_changes=accept_changes, names=self._option_names
        )
        device = values["settings"]["run"]["device"]
        if device != run.device.type:
            _log.warning("the run began on %s; on %s it rounds differently", device, run.device.type)
        tensors, own = checkpoint.tensors, f"rank{run.rank}/"
        # the state of one optimizer means nothing to another
        self.state.restore_shared(tensors, optimizer="config.optim.optimizer" not in changed)
        carried = {name.removeprefix(own): value for name, value in tensors.items() if name.startswith(own)}
        self.progress = Progress(**values["progress"])
        if DEV_DATA in changed:  # the next evaluation is the first on this data
            self.progress = dataclasses.replace(self.progress, best=None, best_step=None, wait_count=0, scores={})
        self.budget = Budget.from_dict(values["budget"])
        self._evaluation_seconds = values.get("evaluation_seconds", 0.0)  # older versions did not keep it
        self.state.restore_own(carried, values["processes"][run.rank])
        if any(f"config.{name}" in changed for name in BUDGETS):
            self.progress.ended = None
            self.budget = self._make_budget()
            self._watch_minutes()
        elif changed and self.progress.ended is not None:
            self._reopen(changed)
        self._steps.rewind()
        self._last_checkpoint = (checkpoint.step, time.monotonic())
        self._clock = time.monotonic()
        if self.progress.ended is None:
            self._metrics_log.open(size=values["log_bytes"], step=checkpoint.step)
            if run.is_main_process:
                begins = "it was stopped before its first checkpoint, so the training begins again"
                report(f"resuming from step {checkpoint.step:,}" if checkpoint.step else begins)

    def _reopen(self, changed: dict[str, str]) -> None:
        """Continue a finished run if it ended by a patience that is longer now."""
        patience, wait_count = self.config.patience, self.progress.wait_count
        if self.progress.ended == "patience" and (patience is None or wait_count < patience):
            self.progress.ended = None
            return
        names = ", ".join(name.removeprefix("config.") for name in changed)
        raise PolysemeError(
            f"the run in this folder is finished, so changing {names} has no effect: give a larger budget "
            f"({', '.join(map(arg, BUDGETS))}) too, or choose another folder"
        )

    def advance(self, stop: GracefulStop, display: Display) -> None:
        """Run one step, and what is due after it."""
        before = self.done
        self._learning_rate = scheduled_learning_rate(self.config.optim, before, self.budget.total)
        own_words = self._steps.step(self._learning_rate, before / self.budget.total)
        stop.listen()
        late = time.monotonic() - self._last_checkpoint[1] > self._checkpoint_interval and self.state.run.is_main_process
        words, stops, lates = self.processes.sum([own_words, stop.name is not None, late])  # once per step, on the host
        self.progress.step += 1
        self.progress.words += int(words)
        self.stopping = stops > 0
        self._tick(training=True)
        self._show_step(display)
        self._after_step(before, checkpoint=lates > 0 or self.stopping, display=display)

    def _show_step(self, display: Display) -> None:
        self.status.advance(self.done, self.budget.total, self.progress.seconds)
        self.status.epoch = self.epoch
        if display.live and time.monotonic() - self._loss_shown > DISPLAY_SECONDS:
            self._note_loss()
        display.stepped(self.status)

    def _note_loss(self) -> None:
        loss = self.state.interval.mean_loss()
        if loss is not None:  # None: it was logged just now
            self.status.loss, self.status.sampled, self._loss_shown = loss, self.state.interval.sampled, time.monotonic()

    def _after_step(self, before: int, *, checkpoint: bool, display: Display) -> None:
        config, step = self.config, self.progress.step
        over = self.done >= self.budget.total
        log = over or step % config.log_every == 0
        if config.eval_every is None:
            evaluate = over or self.budget.passes_evaluation(before, self.done)
        else:
            evaluate = over or step % config.eval_every == 0
        checkpoint |= config.checkpoint_every is not None and step % config.checkpoint_every == 0
        timed = not over and config.minutes is not None and self.budget.passes_timing_check(before, self.done)
        if self._check_each_step or log or evaluate or checkpoint or timed:
            self._check_finite()
        if log:
            self._log_interval()
        if evaluate and self.dev is not None:
            self._evaluate(display)
        if timed and self.progress.ended is None:
            checkpoint |= self._revise_budget()
        if over:
            self.progress.ended = "budget"
        elif self.progress.ended is not None and not log:  # out of patience: log the last steps too
            self._log_interval()
        if checkpoint or self.progress.ended is not None:
            self._checkpoint()

    @property
    def epoch(self) -> float:
        """Passes over the data so far: by batches where their number is known, so that the number in all stays as it is."""
        batches: int | None = getattr(self.state.batches, "batches_per_epoch", None)
        if batches is None:
            return self.progress.words / max(self.state.batches.words_per_epoch, 1)
        return self.progress.step * self.config.gradient_accumulation_steps / max(batches, 1)

    def _log_interval(self) -> None:
        line = self.state.interval.summary(self.processes)
        line |= {"learning_rate": self._learning_rate, "epoch": self.status.epoch, "seconds": round(self.progress.seconds, 3)}
        self._metrics_log.write(self.progress.step, "train", line)
        self._note_loss()
        self._loss_sums = self._sums_since_evaluation()
        self.state.interval.clear()

    def _sums_since_evaluation(self) -> tuple[float, int]:
        (loss, words), (more, count) = self._loss_sums, self.state.interval.loss_sums()
        return loss + more, words + count

    def _note_mean_loss(self) -> None:
        """Show the mean loss since the last evaluation, of a task that of an epoch: a few batches are mostly chance."""
        loss, words = self._sums_since_evaluation()
        if words > 0:
            self.status.loss = loss / words
        part, count = self.state.interval.loss_sums()
        self._loss_sums = (-part, -count)  # the interval goes on

    def _evaluate(self, display: Display) -> None:
        begun = self.progress.seconds
        with averaged_weights(self.state.optimizer):
            scores, progress = self._steps.evaluate(self.dev), self.progress
        score = scores[self.state.learner.score_name]
        if not math.isfinite(score):
            raise self._diverged(f"{self.state.learner.score_name} on the held-out data is {score}")
        better = progress.best is None or score < progress.best
        kept = better or (score == progress.best and self.state.learner.prefers_later)
        if kept:
            progress.best, progress.best_step, progress.scores = score, progress.step, scores
            self._save_model()
        progress.wait_count = 0 if better else progress.wait_count + 1
        if self.config.patience is not None and progress.wait_count >= self.config.patience:
            progress.ended = "patience"
        self._tick(training=False)
        self._evaluation_seconds = progress.seconds - begun
        self._all_evaluation_seconds += self._evaluation_seconds
        self._metrics_log.write(progress.step, "dev", {**scores, "best": kept, "seconds": round(progress.seconds, 3)})
        self._note_loss()
        self._note_mean_loss()
        name = self.state.learner.shown_score
        self.status.evaluated(scores[name], progress.scores[name], is_best=kept)
        self.status.is_perfect = self.state.learner.is_perfect(score)
        self.status.advance(self.done, self.budget.total, progress.seconds)
        display.evaluated(self.status)

    def _save_model(self) -> None:
        if not self.state.run.is_main_process:
            return
        try:
            with averaged_weights(self.state.optimizer):
                self.state.learner.save(self.out)
        except PolysemeError as error:
            kept = f"the checkpoint of step {max(self._last_checkpoint[0], 0)} is kept"
            raise PolysemeError(
                f"cannot save the model in {self.out} ({error}); {kept}: the same command resumes it"
            ) from error

    def _revise_budget(self) -> bool:
        """Correct a budget in minutes if the steps since the last check were much faster or slower than expected."""
        last, progress = self._timed, self.progress
        self._watch_minutes()
        if last is None or self._timed is None:  # the steps since a resume may be few, and the first of them are slow
            return False
        per_step = max(self._timed[1] - last[1], 1e-9) / (progress.step - last[0])
        timing = Timing(step=per_step, evaluation=self._evaluation_seconds, spent=progress.seconds)
        budget: Budget = self.processes.broadcast(revise_budget(self.config, self.budget, progress.step, timing))
        if budget == self.budget:
            return False
        self._report_correction(self.budget.total, budget.total)
        self.budget = budget
        return True

    def _report_correction(self, before: int, total: int) -> None:
        """Report a number of steps that differs much from the one that was told last; most corrections are small."""
        told = self._told_totals = self._told_totals or [before]
        if len(told) > MANY_CORRECTIONS or not is_large_correction(told[-1], total):
            return
        if self.state.run.is_main_process:
            how = "faster" if total > told[-1] else "slower"
            of = f"{arg('minutes', self.config.minutes)} is {total:,} steps now, not {told[-1]:,}"
            report(f"{of}: the machine is {how} than measured before")
        told.append(total)

    def _checkpoint(self) -> None:
        if self._last_checkpoint[0] == self.progress.step:
            return
        began = time.monotonic()
        if not self.state.finite():
            raise self._diverged("a weight is not finite")
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
                "budget": self.budget.to_dict(),
                "progress": dataclasses.asdict(self.progress),
                "processes": [values for _, values in owns],
                "log_bytes": self._metrics_log.size(),
                "evaluation_seconds": self._evaluation_seconds,
            }
            self._checkpoints.write(Checkpoint(self.progress.step, tensors, values))
        self._last_checkpoint = (self.progress.step, time.monotonic())
        self._checkpoint_seconds = self._last_checkpoint[1] - began
        self._tick(training=False)

    @property
    def _checkpoint_interval(self) -> float:
        """Seconds until the next checkpoint is due."""
        given = self.config.checkpoint_seconds
        return max(CHECKPOINT_SECONDS, CHECKPOINT_COST * self._checkpoint_seconds) if given is None else given

    def _check_finite(self) -> None:
        finite = self.state.interval.finite(self.processes)
        self._tick(training=True)  # on a GPU the check waited for the steps before
        if not finite:
            raise self._diverged("the loss or its gradient is not finite")
        if self.state.interval.stuck():
            self._end_stuck()

    def _end_stuck(self) -> None:
        """End a run whose gradients have exploded: with its best model if it had learned for half of its time, or an error."""
        what, progress = f"the last gradients were all skipped, longer than {self.config.optim.skip_norm:g}", self.progress
        learned = 1 - int(self.state.interval.consecutive_skips) / progress.step
        if progress.best_step is None or 2 * self.done * learned < self.budget.total:
            raise self._diverged(what)
        progress.ended = "gradients"
        if self.state.run.is_main_process:
            ended = f"{what} at step {progress.step}: the run ends here with its best model, of step {progress.best_step}"
            advice = (
                f"a run in another folder with a {arg('learning_rate')} below {self.config.optim.learning_rate:g} may go on"
            )
            _log.warning("%s; %s", ended, advice)

    def _diverged(self, what: str) -> DivergedError:
        optim, step = self.config.optim, max(self._last_checkpoint[0], 0)
        clip = arg("clip_norm") if optim.clip_norm is None else f"a {arg('clip_norm')} below {optim.clip_norm:g}"
        precision = f", {arg('precision', 'fp32')}" if self.state.run.precision == "bf16" else ""
        return DivergedError(
            f"{what} at step {self.progress.step}",
            f"the last good checkpoint, of step {step}, is kept in {self.out / 'run'}: "
            f"give a {arg('learning_rate')} below {optim.learning_rate:g}, a larger {arg('warmup')}, {clip}{precision}, "
            f"and {arg('accept_changes', True)} to resume from there",
        )

    def _tick(self, *, training: bool) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._clock
        if training:
            self.state.interval.seconds += now - self._clock
        self._clock = now
