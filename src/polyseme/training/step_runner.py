"""One training step, one evaluation, and how long they take. The loop decides when to run them."""

from __future__ import annotations

import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from polyseme.base.errors import PolysemeError
from polyseme.base.files import wrap_os_errors
from polyseme.base.interrupts import Note, computing
from polyseme.base.run import Run
from polyseme.training.base import Batches, Learner, Loss
from polyseme.training.budget import Timing, check_minutes
from polyseme.training.config import TrainConfig
from polyseme.training.distributed import SingleProcess
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim import build_optimizer, clip_gradients, set_learning_rate
from polyseme.training.prefetch import PrefetchedBatches
from polyseme.training.state import TrainingState

TIMING_FRACTION = 0.02  # of a budget in minutes
SLOW_FRACTION = 0.1  # of it: where two steps take longer, no more are measured


class StepRunner:
    """Runs steps and evaluations of one learner."""

    def __init__(self, config: TrainConfig, state: TrainingState, processes: SingleProcess) -> None:
        self._config, self._state, self._processes = config, state, processes
        self._model = processes.wrap(state.learner)
        self._batches: Iterator[Any] | None = None
        self.stop_note: Note = lambda: "stopped"
        """What to say if Ctrl-C ends a step or an evaluation before its end."""
        self._timed_steps = self._timed_words = 0
        state.learner.train()

    def rewind(self) -> None:
        """Take the next batch from the position of the batches, after a `seek`."""
        self._batches = None

    def step(self, learning_rate: float, done: float = 0.0) -> int:
        """Run one optimizer step when the fraction `done` of the run is done; return the words of this process."""
        with computing(self.stop_note):
            return self._step(learning_rate, done)

    def _step(self, learning_rate: float, done: float) -> int:
        state, count = self._state, self._config.gradient_accumulation_steps
        words = 0
        for number in range(count):
            last = number == count - 1
            with contextlib.nullcontext() if last else self._processes.no_sync(self._model):
                loss = self._loss()
                (loss.total / count).backward()
            state.interval.add_batch(loss)
            words += loss.words
            del loss  # what is left of its graph would be in the way of a CUDA graph that the next batch captures
        set_learning_rate(state.optimizer, learning_rate, done)
        norm = clip_gradients(self._config.optim, state.optimizer)
        state.optimizer.step()
        state.optimizer.zero_grad()
        state.interval.add_step(norm, self._config.optim.skip_norm)
        return words

    def _loss(self) -> Loss:
        if self._batches is None:
            self._batches = iter(self._state.batches)
        try:
            batch = next(self._batches)
        except StopIteration:
            raise PolysemeError("the training data has no more batches: is it empty, or smaller than one batch?") from None
        run = self._state.run
        with torch.autocast(run.device.type, dtype=torch.bfloat16, enabled=run.precision == "bf16"):
            loss: Loss = self._model(batch)
        return loss

    def evaluate(self, dev: Any) -> dict[str, float]:
        """Evaluate the learner; every process computes the numbers, so that none times out, and the main process's count."""
        learner = self._state.learner
        carried = {name: value.clone() for name, value in learner.carried_state().items()}
        learner.eval()
        with torch.no_grad(), computing(self.stop_note):
            scores = {name: float(value) for name, value in learner.evaluate(dev).items()}
        learner.train()
        learner.restore_carried_state(carried)
        if learner.score_name not in scores:
            raise ValueError(f"evaluate gave {sorted(scores)}; the learner's score_name is {learner.score_name!r}")
        result: dict[str, float] = self._processes.broadcast(scores)
        return result

    def measure(self, dev: Any, folder: Path) -> Timing:
        """Time some steps, an evaluation and saving the model (below `folder`), then undo them to the last bit."""
        begun = time.monotonic()
        state = self._state
        shared = {name: value.detach().clone() for name, value in state.shared().items()}
        carried, values = state.own()
        values = json.loads(json.dumps(values))  # a copy, by the same way as through a checkpoint
        step = self._measure_step()
        evaluation = self._time_evaluation(dev, folder)
        if self._state.run.device.type == "cuda":
            evaluation = self._time_evaluation(dev, folder)  # the first one compiled
        state.restore_shared(shared)
        state.restore_own(carried, values)
        self.rewind()
        words = self._timed_words / max(self._timed_steps, 1) * self._state.run.world_size
        timing: Timing = self._processes.broadcast(Timing(step, evaluation, spent=time.monotonic() - begun, words=words))
        return timing

    def _measure_step(self) -> float:
        """Return the seconds of a step, by few steps where each takes a large part of the minutes."""
        seconds, spent = 60 * (self._config.minutes or 0.0), 0.0
        for _ in range(2):  # the first steps allocate and compile
            step = self._time_steps(1)
            spent += step
            check_minutes(self._config, spent=spent, step=0.0)  # as the next one may be much faster
        check_minutes(self._config, spent=spent, step=step)
        if spent > SLOW_FRACTION * seconds:
            return step
        fastest = min(self._time_steps(1) for _ in range(3))  # a disturbed step would leave few to measure
        count = max(1, min(50, int(TIMING_FRACTION * seconds / max(fastest, 1e-9))) // 3)
        return statistics.median(self._time_steps(count) for _ in range(3))  # one of three may still compile or be disturbed

    def _time_evaluation(self, dev: Any, folder: Path) -> float:
        if dev is None:
            return 0.0
        begun = time.monotonic()
        self.evaluate(dev)
        if self._state.run.is_main_process:
            with wrap_os_errors(folder, "write"):
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(prefix=".measure-", dir=folder) as temporary:
                    self._state.learner.save(Path(temporary))
        return time.monotonic() - begun

    def _time_steps(self, steps: int) -> float:
        device = self._state.run.device
        begun = time.monotonic()
        for _ in range(steps):
            self._timed_words += self.step(0.0)
        self._timed_steps += steps
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds: float = self._processes.broadcast((time.monotonic() - begun) / steps)
        return seconds


def time_steps(learner: Learner, train: Batches, config: TrainConfig, run: Run, *, limit: float) -> float:
    """Return the seconds of a step, by a few that change nothing but the position of the batches; `limit`: seconds, about."""
    learner.to(run.device)
    batches = PrefetchedBatches(train, learner.prepare)
    state = TrainingState(learner, build_optimizer(config.optim, learner), batches, IntervalMetrics(run.device), run)
    steps, times = StepRunner(config, state, SingleProcess()), list[float]()
    began = time.monotonic()
    while len(times) < 8 and (len(times) < 2 or time.monotonic() - began < limit):
        before = time.monotonic()
        steps.step(0.0)
        times.append(time.monotonic() - before)
    return statistics.median(times[1:])  # the first one allocates
