from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.training.base import Loss
from polyseme.training.budget import Budget, Timing, budget_from_minutes, revise_budget
from polyseme.training.config import TrainConfig
from polyseme.training.fit_loop import DivergedError
from polyseme.training.optim_config import OptimConfig
from polyseme.training.run_status import RunStatus
from polyseme.training.trainer import Trainer, TrainOutput
from tests.training import toy
from tests.training.compare import assert_same_run, log, newest


def fit(out: Path, learner: toy.ToyLearner | None = None, **changes: Any) -> TrainOutput:
    return Trainer(toy.config(**changes), toy.RUN).fit(learner or toy.learner(), toy.ToyBatches(), toy.dev(), out)


def test_it_learns_and_keeps_the_best(tmp_path: Path) -> None:
    result = fit(tmp_path, steps=150, eval_every=15, optim=OptimConfig(learning_rate=0.1))
    scores = [line["perplexity"] for line in log(tmp_path) if line["kind"] == "dev"]
    assert scores[0] > 9 and result.best == min(scores) < 8
    again = toy.learner()
    again.load_state_dict(toy.best(tmp_path))
    with torch.no_grad():
        assert again.eval().evaluate(toy.dev())["perplexity"] == result.best


def test_the_log_tells_the_mean_for_each_word(tmp_path: Path) -> None:
    """Against the losses that the learner saw, summed here."""
    seen: list[tuple[float, int]] = []

    class Watched(toy.ToyLearner):
        def loss(self, batch: Tensor) -> Loss:
            loss = super().loss(batch[:, : 3 + len(seen) % 3])  # batches of different sizes
            seen.append((loss.total.item(), loss.words))
            return loss

    torch.manual_seed(3)
    fit(tmp_path, Watched(), steps=10)
    lines = [line for line in log(tmp_path) if line["kind"] == "train"]
    assert [line["step"] for line in lines] == [4, 8, 10]
    for line, (start, end) in zip(lines, [(0, 4), (4, 8), (8, 10)], strict=True):
        expected = sum(loss * words for loss, words in seen[start:end]) / sum(words for _, words in seen[start:end])
        assert line["loss"] == pytest.approx(expected, rel=1e-12)
        assert line["half"] == pytest.approx(expected / 2, rel=1e-6)
        assert line["epoch"] == sum(words for _, words in seen[:end]) / toy.ToyBatches().words_per_epoch
        assert line["gradient_norm"] > 0 and line["learning_rate"] > 0
    raw = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])
    assert raw["words_per_second"] > 0 and raw["seconds"] > 0


def test_a_sampled_loss_is_called_sampled(tmp_path: Path) -> None:
    class Sampled(toy.ToyLearner):
        def loss(self, batch: Tensor) -> Loss:
            loss = super().loss(batch)
            return Loss(loss.total, loss.words, sampled=True)

    fit(tmp_path, Sampled(), steps=4)
    line = log(tmp_path)[0]
    assert "sampled_loss" in line and "loss" not in line


def test_nan_stops_with_the_last_good_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(DivergedError) as told:
        fit(tmp_path, toy.learner(broken_at=17))
    assert "not finite at step 17; the last good checkpoint, of step 14, is kept" in str(told.value)
    assert "give a learning_rate below 0.01" in str(told.value)
    assert newest(tmp_path, "json").name == "checkpoint-00000014.json"
    fit(tmp_path / "whole")
    fit(tmp_path)  # mended
    assert_same_run(tmp_path / "whole", tmp_path)


def test_an_infinite_gradient_never_reaches_a_checkpoint(tmp_path: Path) -> None:
    class Steep(toy.ToyLearner):
        def loss(self, batch: Tensor) -> Loss:
            loss = super().loss(batch)
            if self.losses == 14:  # a step with a checkpoint
                loss.total = loss.total + (self.table.weight * 0).sum().sqrt()  # finite, but its slope is not
            return loss

    torch.manual_seed(3)
    with pytest.raises(DivergedError, match=r"at step 14; the last good checkpoint, of step 7,"):
        fit(tmp_path, Steep())


def test_a_held_out_score_that_is_no_number_stops_too(tmp_path: Path) -> None:
    class Lost(toy.ToyLearner):
        def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
            return {"perplexity": math.nan}

    with pytest.raises(DivergedError, match="perplexity on the held-out data is nan at step 10"):
        fit(tmp_path, Lost())


class Worsening(toy.ToyLearner):
    def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
        return {"perplexity": float(abs(self.losses - 20))}


def test_patience(tmp_path: Path) -> None:
    result = fit(tmp_path, Worsening(), steps=400, patience=3)
    assert (result.ended, result.steps, result.best, result.best_step) == ("patience", 50, 0.0, 20)
    assert fit(tmp_path, Worsening(), steps=400, patience=3).steps == 50
    assert log(tmp_path)[-1]["step"] == 50


def test_without_held_out_data_the_newest_is_kept(tmp_path: Path) -> None:
    learner = toy.learner()
    result = Trainer(toy.config(), toy.RUN).fit(learner, toy.ToyBatches(), None, tmp_path)
    assert result.best is None
    assert all(torch.equal(value, learner.state_dict()[name]) for name, value in toy.best(tmp_path).items())


def test_accumulated_batches_are_one_larger_batch(tmp_path: Path) -> None:
    """Two batches of two lanes, against one of four; without dropout and from a fresh state each time."""

    class Fresh(toy.ToyLearner):
        def loss(self, batch: Tensor) -> Loss:
            self.state = None
            return super().loss(batch)

    class Halves(toy.ToyBatches):
        def __iter__(self) -> Any:
            for batch in super().__iter__():
                yield from batch.chunk(2)

    made = []
    for batches, accumulate in ((toy.ToyBatches(), 1), (Halves(), 2)):
        torch.manual_seed(3)
        learner = Fresh(dropout=0.0)
        Trainer(toy.config(gradient_accumulation_steps=accumulate), toy.RUN).fit(
            learner, batches, None, tmp_path / str(accumulate)
        )
        made.append(learner.state_dict())
    for name, value in made[0].items():
        torch.testing.assert_close(value, made[1][name], rtol=1e-4, atol=1e-5)


class Clock:
    """Time that passes only where a learner says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Slow(toy.ToyLearner):
    clock: Clock

    def loss(self, batch: Tensor) -> Loss:
        self.clock.now += 0.1
        return super().loss(batch)

    def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
        self.clock.now += 0.5
        return super().evaluate(dev)

    def save(self, folder: Path) -> None:
        self.clock.now += 0.5
        super().save(folder)


@pytest.mark.slow  # 600 steps
def test_minutes_become_steps_that_the_run_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    torch.manual_seed(3)
    result = fit(tmp_path / "timed", Slow(), minutes=1, eval_every=20, checkpoint_every=100)
    # 54 s, less 17 timed steps (or 14, by rounding), an evaluation, and the last one; 20 steps and an evaluation take 3 s
    assert result.steps in (int((54 - 1.7 - 1 - 1) / 0.15), int((54 - 1.4 - 1 - 1) / 0.15))
    assert result.ended == "budget" and 50 < result.seconds <= 54
    budget = json.loads(newest(tmp_path / "timed", "json").read_text())["values"]["budget"]
    assert (budget["unit"], budget["total"]) == ("steps", result.steps)
    # what the measuring did is undone to the bit: the same steps without it give the same run
    fit(tmp_path / "counted", steps=result.steps, eval_every=20, checkpoint_every=100)
    assert log(tmp_path / "timed") == log(tmp_path / "counted")


@pytest.mark.slow
def test_steps_that_are_disturbed_at_first_leave_the_rate_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disturbed(Slow):
        taken = 0

        def loss(self, batch: Tensor) -> Loss:
            self.taken += 1
            self.clock.now += 3.0 if self.taken in (3, 4, 8) else 0.0
            return super().loss(batch)

    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    result = fit(tmp_path, Disturbed(), minutes=1, eval_every=20, checkpoint_every=100)
    assert 250 < result.steps < 300  # at 3.1 s a step it would be 11


def test_a_run_whose_measuring_was_disturbed_is_lengthened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Disturbed(Slow):
        taken = 0

        def loss(self, batch: Tensor) -> Loss:
            self.taken += 1
            self.clock.now += 1.0 if self.taken <= 10 else 0.0  # all that is measured, and the first steps
            return super().loss(batch)

    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    with caplog.at_level("INFO", "polyseme.progress"):
        result = fit(tmp_path, Disturbed(), minutes=1, checkpoint_every=100)
    assert any("the machine is faster than measured before" in line for line in caplog.messages)
    # 1.1 s a step would be some 25; behind 10 s of measuring there is room for 43 s of steps and ten evaluations
    assert 200 < result.steps < 430 and 45 < result.seconds <= 60
    budget = json.loads(newest(tmp_path, "json").read_text())["values"]["budget"]
    assert budget["total"] == result.steps


def test_a_busy_moment_in_the_second_half_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Disturbed(Slow):
        def loss(self, batch: Tensor) -> Loss:
            self.clock.now += 0.5 if 30 < self.clock.now < 36 else 0.0
            return super().loss(batch)

    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    with caplog.at_level("INFO", "polyseme.progress"):
        result = fit(tmp_path, Disturbed(), minutes=1, checkpoint_every=100)
    budget = json.loads(newest(tmp_path, "json").read_text())["values"]["budget"]
    assert 0.8 * 60 < result.seconds <= 60 and result.steps == budget["total"] <= budget["longest"]
    assert sum("steps now, not" in line for line in caplog.messages) <= 2


@pytest.mark.slow
def test_a_run_of_one_evaluation_is_lengthened_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Disturbed(Slow):
        taken = 0

        def loss(self, batch: Tensor) -> Loss:
            self.taken += 1
            self.clock.now += 1.0 if self.taken <= 10 else 0.0
            return super().loss(batch)

        def evaluate(self, dev: list[Tensor]) -> dict[str, float]:
            self.clock.now += 7.0  # with so little time left there is room for the last one alone
            return super().evaluate(dev)

    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    result = fit(tmp_path, Disturbed(), minutes=1, eval_every=None, checkpoint_every=100)
    budget = json.loads(newest(tmp_path, "json").read_text())["values"]["budget"]
    assert budget["total"] == result.steps and budget["evaluations"] == 1
    assert result.steps > 100 and 45 < result.seconds <= 60  # 1.1 s a step would be some 20


class PacedClock(Clock):
    """Each step takes so many seconds."""

    pace = 0.0


class Paced(Slow):
    clock: PacedClock
    limit = math.inf

    def loss(self, batch: Tensor) -> Loss:
        self.clock.now += self.clock.pace - 0.1
        if self.clock.now > self.limit:
            raise RuntimeError("a power cut")
        return super().loss(batch)


@pytest.mark.parametrize(("before", "after", "least", "most"), [(1.1, 0.1, 100, 430), (0.1, 0.3, 150, 300)])
def test_a_resumed_run_is_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: float, after: float, least: int, most: int
) -> None:
    """The first sitting ends after 20 seconds of 60, and there is time for 300 steps of a tenth of a second, or for 100."""
    Slow.clock = clock = PacedClock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", clock)
    first = Paced()
    clock.pace, first.limit = before, 20.0
    with pytest.raises(RuntimeError, match="power cut"):
        fit(tmp_path, first, minutes=1, eval_every=None)
    kept = json.loads(newest(tmp_path, "json").read_text())["values"]
    planned = kept["budget"]["total"]
    assert planned < 40 if before > after else planned > 300
    clock.pace = after
    result = fit(tmp_path, Paced(), minutes=1, eval_every=None)
    assert least < result.steps < most and result.seconds <= 60
    assert round(kept["evaluation_seconds"], 6) in (0.5, 1.0)  # without or with a better model to save


def test_a_plan_made_again() -> None:
    config, budget = TrainConfig(minutes=1), Budget(unit="steps", total=40)
    quick = Timing(step=0.1, evaluation=1.0, spent=13.0)  # 54 s - 13 s - 1 s, nine further evaluations take 9 s with room for 8
    again = revise_budget(config, budget, 4, quick)
    assert again == Budget(unit="steps", total=4 + 330, evaluations=8, longest=40)
    assert revise_budget(config, budget, 21, quick) == budget  # in the second half
    shortened = budget.replace(longest=70)
    assert revise_budget(config, shortened, 21, quick).total == 70  # goes back to what it was, and no further
    bit_early = Timing(step=1.0, evaluation=0.0, spent=22.0)
    assert revise_budget(config, shortened, 21, bit_early).total == 21 + 32  # 54 s - 22 s
    assert revise_budget(config, Budget(unit="steps", total=300), 4, quick) == Budget(unit="steps", total=300)  # a tenth more
    bit_late = Timing(step=1.0, evaluation=1.0, spent=13.0)  # 13 s + 36 s + 10 s
    assert revise_budget(config, budget, 4, bit_late) == budget
    slow = Timing(step=2.0, evaluation=1.0, spent=13.0)  # 54 s - 13 s - 1 s, of which evaluations may take 8 s
    assert revise_budget(config, budget, 4, slow) == Budget(unit="steps", total=4 + 16, evaluations=8, longest=40)
    assert revise_budget(config, budget, 30, Timing(step=5.0, evaluation=1.0, spent=30.0)).total == 34  # second half
    assert revise_budget(config, budget, 30, Timing(step=0.1, evaluation=1.0, spent=60.0)).total == 31  # no time is left


def test_a_minutes_run_resumed_has_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow.clock = Clock()
    for module in ("fit_loop", "step_runner"):
        monkeypatch.setattr(f"polyseme.training.{module}.time", Slow.clock)
    with pytest.raises(DivergedError):
        fit(tmp_path, Slow(broken_at=60), minutes=0.4)
    budget = json.loads(newest(tmp_path, "json").read_text())["values"]["budget"]
    assert budget["total"] > 60
    assert fit(tmp_path, Slow(), minutes=0.4).steps == budget["total"]


def test_minutes_by_hand() -> None:
    rate = Timing(step=0.1, evaluation=1.0, spent=3.0)
    # 60 s x 0.9 - 3 s - 1 s = 50 s; a fifth of it is room for ten evaluations, nine more of which take 9 s
    assert budget_from_minutes(TrainConfig(minutes=1), rate) == Budget(unit="steps", total=410, evaluations=10)
    assert budget_from_minutes(TrainConfig(minutes=1, eval_every=10), rate).total == 250  # 50 s / (0.1 + 1 / 10)
    slow = Timing(step=0.1, evaluation=5.0, spent=3.0)  # 46 s left, room for one
    assert budget_from_minutes(TrainConfig(minutes=1), slow) == Budget(unit="steps", total=460, evaluations=1)
    with pytest.raises(PolysemeError, match="minutes=1 is too short"):
        budget_from_minutes(TrainConfig(minutes=1), Timing(step=60.0, evaluation=0.0, spent=1.0))
    with pytest.raises(PolysemeError, match="take 183 minutes or more"):  # 9901 s / 0.9, and no 1.8e+02
        budget_from_minutes(TrainConfig(minutes=1), Timing(step=60.0, evaluation=9840.0, spent=1.0))


def test_short_minutes_are_refused_after_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow.clock = Clock()
    monkeypatch.setattr("polyseme.training.step_runner.time", Slow.clock)
    with pytest.raises(PolysemeError, match=r"minutes=0\.004 is too short: .* take 0\.0056 minutes or more; give more minutes"):
        fit(tmp_path, Slow(), minutes=0.004)  # 0.24 s; two steps to measure and one to train
    assert Slow.clock.now == pytest.approx(0.2)


def test_budgets(tmp_path: Path) -> None:
    assert fit(tmp_path / "epochs", epochs=1.5).words == 400  # 390 of 260 a pass, 20 a step
    assert fit(tmp_path / "words", words=95).words == 100
    with pytest.raises(ConfigError, match=r"steps and minutes are given: give exactly one of steps, epochs, words, minutes"):
        TrainConfig(steps=1, minutes=1)
    with pytest.raises(ConfigError, match=r"steps is 0; allowed: 1 or more; patience is 0"):
        TrainConfig(steps=0, patience=0)
    with pytest.raises(ConfigError, match="no budget is given"):
        TrainConfig()
    with pytest.raises(ConfigError, match="epochs is inf; allowed: finite numbers"):
        TrainConfig(epochs=math.inf)


def test_no_batches(tmp_path: Path) -> None:
    class Nothing(toy.ToyBatches):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(PolysemeError, match="has no more batches"):
        Trainer(toy.config(), toy.RUN).fit(toy.learner(), Nothing(), None, tmp_path)


def test_run_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("RANK", "3"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    run = Run.from_environment(seed=2, device="cpu")
    assert (run.seed, run.rank, run.world_size, run.precision, run.is_main_process) == (2, 3, 4, "fp32", False)
    with pytest.raises(UsageError, match="device is 'gpu'; allowed: cpu, cuda"):
        Run.from_environment(device="gpu")
    with monkeypatch.context() as no_gpu, pytest.raises(UsageError, match="PyTorch finds no GPU: leave it out"):
        no_gpu.setattr(torch.cuda, "is_available", lambda: False)
        Run.from_environment(device="cuda")
    with monkeypatch.context() as gpu:
        gpu.setattr(torch.cuda, "is_available", lambda: True)
        gpu.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
        run = Run.from_environment(device="cuda")
        assert (run.device, run.precision) == (torch.device("cuda:1"), "bf16")
        gpu.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
        assert Run.from_environment(device="cuda").precision == "fp32"
    monkeypatch.setenv("RANK", "many")
    with pytest.raises(UsageError, match="RANK is 'many'"):
        Run.from_environment()
    with pytest.raises(UsageError, match="needs a CUDA device"):
        Run(precision="bf16")
    with pytest.raises(UsageError, match="seed is -1; allowed: 0 or more"):
        Run(seed=-1)


def test_tensorboard_where_it_is_installed(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fit(tmp_path)
    events = reader.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    expected = [(line["step"], line["loss"]) for line in log(tmp_path) if line["kind"] == "train"]
    assert [(event.step, event.value) for event in events.Scalars("train/loss")] == [
        (step, pytest.approx(loss)) for step, loss in expected
    ]


def test_the_bar_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("polyseme.training.progress_bar.visible", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    fit(tmp_path)
    shown = capsys.readouterr()
    assert shown.out == "" and "100% " in shown.err and "dev perplexity" in shown.err and "(best" in shown.err


def test_one_line_an_evaluation_without_a_terminal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="polyseme.progress")
    fit(tmp_path)
    evaluations = [line for line in log(tmp_path) if line["kind"] == "dev"]
    assert len(caplog.messages) == len(evaluations) > 1
    for line in caplog.messages:
        assert line.startswith("epoch ") and ", loss " in line and ", dev perplexity " in line and len(line) <= 80


def test_a_line_shows_the_mean_loss_since_the_line_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Against the losses that the learner saw; the log has intervals of 4 steps, and evaluations come after 10."""
    caplog.set_level("INFO", logger="polyseme.progress")
    seen: list[float] = []

    class Watched(toy.ToyLearner):
        def loss(self, batch: Tensor) -> Loss:
            loss = super().loss(batch)
            seen.append(loss.total.item())
            return loss

    torch.manual_seed(3)
    fit(tmp_path, Watched(), steps=30)
    means = [sum(seen[end - 10 : end]) / 10 for end in (10, 20, 30)]
    assert [line.partition("loss ")[2][:6] for line in caplog.messages] == [f"{mean:.4f}" for mean in means]


def test_a_perfect_score_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="polyseme.progress")

    class Perfect(Worsening):
        def is_perfect(self, score: float) -> bool:
            return score <= 10

    fit(tmp_path, Perfect(), steps=50)
    told = "perfect dev perplexity: of such networks, the one with the least dev loss is kept"
    assert [line == told for line in caplog.messages] == [False, True, *[False] * 4]


def test_the_time_that_is_left() -> None:
    status = RunStatus(total=100, done=0, score_name="f1", patience=3)
    for step in range(1, 21):
        status.advance(step, 100, 60.0 + 2.0 * step)  # the first took a minute, and compiled
    assert status.left == pytest.approx(160.0)
    assert status.expected() == "expected time: 3 min, less if the dev score stops improving"
    status.evaluated(0.5, 0.75, is_best=False)
    assert "dev f1 0.5000 (best 0.7500)" in status.bar() and status.bar().endswith("3 min left")
    assert all(len(status.bar(width)) <= min(width, 80) for width in (10, 40, 80, 200))
