"""One sitting of a run: from its start or its last checkpoint to its end or a stop."""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from pathlib import Path
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.training.budget import Plan, Rate, plan_again, plan_known, plan_minutes
from polyseme.training.checkpoint import Checkpoint, Checkpoints
from polyseme.training.config import BUDGETS, JUDGED, TrainConfig, check_settings
from polyseme.training.distributed import Alone
from polyseme.training.optim import learning_rate
from polyseme.training.record import Record
from polyseme.training.screen import Draw
from polyseme.training.signals import StopSignal
from polyseme.training.state import Parts, Progress
from polyseme.training.stepper import Stepper

_log = logging.getLogger(__name__)
SECONDS, WRITING = 120.0, 50.0  # between checkpoints, unless the config says otherwise: at least, and in times of writing one


class DivergedError(PolysemeError):
    """The loss, the gradient or a weight is no longer a number."""


class Session:
    """The state of a run in memory, and the order of things after each step."""

    plan: Plan

    def __init__(self, config: TrainConfig, parts: Parts, ranks: Alone, *, dev: Any, out: Path, record: Record) -> None:
        self.config, self.parts, self.ranks, self.dev, self.out = config, parts, ranks, dev, out
        self.progress = Progress()
        self.stopping = False
        self._record = record
        self._stepper = Stepper(config, parts, ranks)
        self._checkpoints = Checkpoints(out / "run")
        self._written: tuple[int, float] = (-1, time.monotonic())  # the last checkpoint: its step, and when
        self._writing = 0.0  # the seconds that it took
        self._mark = time.monotonic()
        self._evaluation = 0.0  # the seconds that the last one took
        self._evaluations = 0.0  # those of all
        self._paced: tuple[int, float] | None = None  # step and seconds without evaluations, where a plan may be lengthened
        # A CPU alone has each loss at once; elsewhere waiting for it would cost every step.
        self._check_each = parts.run.device.type == "cpu" and parts.run.ranks == 1

    @property
    def done(self) -> int:
        """How far the run is, in the plan's unit."""
        return self.plan.done(self.progress.step, self.progress.words)

    def begin(self, settings: dict[str, Any], *, accept_changes: bool) -> None:
        """Start the run, or go on with the one in the folder."""
        self._settings = settings
        found: Checkpoint | None = None
        if self.parts.run.first:
            self._checkpoints.clean()
            found = self._checkpoints.newest()
        found = self.ranks.from_first(found)
        if found is not None:
            self._resume(found, accept_changes=accept_changes)
            return
        self.parts.run.seed_all()
        self.plan = self._make_plan()
        self._record.open()
        self._checkpoint()  # keeps the plan, and shows before the first step that the disk has room
        self._paced = None if self.config.minutes is None else (0, self.progress.seconds)

    def _make_plan(self) -> Plan:
        plan = plan_known(self.config, self.parts.batches.words_per_epoch)
        if plan is None:
            rate = self._stepper.measure(self.dev, self.out / "run")
            self._evaluation = rate.evaluation
            plan = plan_minutes(self.config, rate)
            _log.info("%g minutes are %d steps at the measured rate", self.config.minutes, plan.total)
        return plan

    def _resume(self, found: Checkpoint, *, accept_changes: bool) -> None:
        values, run = found.values, self.parts.run
        changed = check_settings(values["settings"], self._settings, accept_changes=accept_changes)
        if values["settings"]["run"]["device"] != run.device.type:
            _log.warning(
                "the run began on %s; on %s it rounds differently", values["settings"]["run"]["device"], run.device.type
            )
        tensors, own = found.tensors, f"rank{run.rank}/"
        # the memory of one optimizer means nothing to another
        self.parts.restore_shared(tensors, optimizer="config.optim.optimizer" not in changed)
        carried = {name.removeprefix(own): value for name, value in tensors.items() if name.startswith(own)}
        self.progress = Progress(**values["progress"])
        if JUDGED in changed:  # the next evaluation is the first by this data
            self.progress = dataclasses.replace(self.progress, best=None, best_step=None, waited=0, scores={})
        self.plan = Plan.from_dict(values["plan"])
        self.parts.restore_own(carried, values["ranks"][run.rank])
        if any(f"config.{name}" in changed for name in BUDGETS):
            self.progress.ended = None
            self.plan = self._make_plan()
        elif changed and self.progress.ended is not None:
            self._reopen(changed)
        self._stepper.rewind()
        self._written = (found.step, time.monotonic())
        self._mark = time.monotonic()
        if self.progress.ended is None:
            self._record.open(size=values["log"], step=found.step)
            _log.info("going on from step %d", found.step)

    def _reopen(self, changed: dict[str, str]) -> None:
        """Let a run that is over go on, if it was out of a patience that is longer now."""
        patience, waited = self.config.patience, self.progress.waited
        if self.progress.ended == "patience" and (patience is None or waited < patience):
            self.progress.ended = None
            return
        told = ", ".join(name.removeprefix("config.") for name in changed)
        raise PolysemeError(
            f"the run in this folder is over, and {told} as given now would change nothing in it: give a longer budget too, "
            "or choose another folder"
        )

    def advance(self, stop: StopSignal, draw: Draw) -> None:
        """One step, and what is due after it."""
        before = self.done
        self._rate = learning_rate(self.config.optim, before, self.plan.total)
        own_words = self._stepper.step(self._rate, before / self.plan.total)
        stop.listen()
        late = time.monotonic() - self._written[1] > self._between_checkpoints and self.parts.run.first
        words, stops, lates = self.ranks.sums([own_words, stop.name is not None, late])  # one agreement a step, on the host
        self.progress.step += 1
        self.progress.words += int(words)
        self.stopping = stops > 0
        self._tick(training=True)
        draw(self.done, self.plan.total)
        self._look(before, checkpoint=lates > 0 or self.stopping, draw=draw)

    def _look(self, before: int, *, checkpoint: bool, draw: Draw) -> None:
        config, step = self.config, self.progress.step
        over = self.done >= self.plan.total
        log = over or step % config.log_every == 0
        if config.eval_every is None:
            evaluate = over or self.plan.passes_evaluation(before, self.done)
        else:
            evaluate = over or step % config.eval_every == 0
        checkpoint |= config.checkpoint_every is not None and step % config.checkpoint_every == 0
        paced = not over and self._paced is not None and self.plan.passes_look(before, self.done)
        if self._check_each or log or evaluate or checkpoint or paced:
            self._check()
        if log:
            self._write_line(draw)
        if evaluate and self.dev is not None:
            self._evaluate()
        if paced and self.progress.ended is None:
            checkpoint |= self._plan_again()  # and keeps it
        if over:
            self.progress.ended = "budget"
        elif self.progress.ended is not None and not log:  # out of patience: the last steps have their line too
            self._write_line(draw)
        if checkpoint or self.progress.ended is not None:
            self._checkpoint()

    def _write_line(self, draw: Draw) -> None:
        line = self.parts.interval.summary(self.ranks)
        epoch = self.progress.words / max(self.parts.batches.words_per_epoch, 1)
        line |= {"learning_rate": self._rate, "epoch": epoch, "seconds": round(self.progress.seconds, 3)}
        self._record.write(self.progress.step, "train", line)
        draw(self.done, self.plan.total, line)
        self.parts.interval.clear()

    def _evaluate(self) -> None:
        begun = self.progress.seconds
        scores, progress = self._stepper.evaluate(self.dev), self.progress
        score = scores[self.parts.learner.score_name]
        if not math.isfinite(score):
            raise self._diverged(f"{self.parts.learner.score_name} on the held-out data is {score}")
        better = progress.best is None or score < progress.best
        if better:
            progress.best, progress.best_step, progress.scores, progress.waited = score, progress.step, scores, 0
            self._save_model()
        else:
            progress.waited += 1
            if self.config.patience is not None and progress.waited >= self.config.patience:
                progress.ended = "patience"
        self._tick(training=False)
        self._evaluation = progress.seconds - begun
        self._evaluations += self._evaluation
        self._record.write(progress.step, "dev", {**scores, "best": better, "seconds": round(progress.seconds, 3)})

    def _save_model(self) -> None:
        """Keep the model as it is now, in the folder of the run."""
        if not self.parts.run.first:
            return
        try:
            self.parts.learner.save(self.out)
        except PolysemeError as error:
            kept = f"the checkpoint of step {max(self._written[0], 0)} is kept"
            raise PolysemeError(
                f"the model could not be saved in {self.out} ({error}); {kept}: when that is mended, the same command goes on"
            ) from error

    def _plan_again(self) -> bool:
        """Lengthen a plan in minutes where the steps since the last look were quicker than measured."""
        assert self._paced is not None
        (step, seconds), progress = self._paced, self.progress
        self._paced = (progress.step, progress.seconds - self._evaluations)
        one = max(self._paced[1] - seconds, 1e-9) / (progress.step - step)
        rate = Rate(step=one, evaluation=self._evaluation, spent=progress.seconds)
        plan: Plan = self.ranks.from_first(plan_again(self.config, self.plan, progress.step, rate))
        if plan == self.plan:
            return False
        _log.info("%g minutes are %d steps, more than measured at first", self.config.minutes, plan.total)
        self.plan = plan
        return True

    def _checkpoint(self) -> None:
        if self._written[0] == self.progress.step:
            return
        began = time.monotonic()
        if not self.parts.finite():
            raise self._diverged("a weight is no longer a number")
        if self.dev is None and self.progress.step:
            self._save_model()
        self._tick(training=False)
        owns = self.ranks.gather(self.parts.own())
        if self.parts.run.first:
            tensors = self.parts.shared()
            for rank, (carried, _) in enumerate(owns):
                tensors |= {f"rank{rank}/{name}": value for name, value in carried.items()}
            values = {
                "settings": self._settings,
                "plan": self.plan.to_dict(),
                "progress": dataclasses.asdict(self.progress),
                "ranks": [values for _, values in owns],
                "log": self._record.size(),
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
        finite = self.parts.interval.finite(self.ranks)
        self._tick(training=True)  # on a GPU the check waited for the steps before
        if not finite:
            raise self._diverged("the loss or its gradient is no longer a number")
        if self.parts.interval.stuck():
            raise self._diverged(f"no gradient could be followed, all are longer than {self.config.optim.skip_norm}")

    def _diverged(self, what: str) -> DivergedError:
        optim, kept = self.config.optim, max(self._written[0], 0)
        clip = "clip_norm (it is off)" if optim.clip_norm is None else f"a clip_norm below {optim.clip_norm:g}"
        precision = ", precision fp32" if self.parts.run.precision == "bf16" else ""
        return DivergedError(
            f"{what} at step {self.progress.step}; the last good checkpoint, of step {kept}, is kept in {self.out / 'run'}: "
            f"lower the learning rate (it is {optim.learning_rate:g}), or try a longer warmup, {clip}{precision}, "
            "and accept the changes (--accept-changes) to go on from there"
        )

    def _tick(self, *, training: bool) -> None:
        now = time.monotonic()
        self.progress.seconds += now - self._mark
        if training:
            self.parts.interval.seconds += now - self._mark
        self._mark = now
