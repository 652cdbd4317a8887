"""Gradients that are too long to follow: they move nothing, they are counted, and a run that has no others stops."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.training.base import Loss
from polyseme.training.distributed import SingleProcess
from polyseme.training.fit_loop import DivergedError
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim import build_optimizer, clip_gradients
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer, TrainOutput
from tests.training import toy
from tests.training.compare import assert_same_run, log


def net(gradient: list[float]) -> nn.Module:
    """Two weights with a gradient, and two that had no part in the loss."""
    module = nn.ParameterDict({"a": torch.zeros(1, 1), "b": torch.zeros(1), "idle": torch.zeros(2)})
    module["a"].grad, module["b"].grad = torch.tensor([gradient[:1]]), torch.tensor(gradient[1:])
    return module


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("gradient", [[6.0, 8.1], [math.inf, 1.0], [math.nan, 1.0], [1.0, -math.inf], [1e30, 1e30]])
def test_a_gradient_too_long_becomes_zero(gradient: list[float], clip: float | None) -> None:
    module = net(gradient)
    config = OptimConfig(clip_norm=clip, skip_norm=10.0)
    norm = clip_gradients(config, build_optimizer(config, module))
    assert module["a"].grad.tolist() == [[0.0]] and module["b"].grad.tolist() == [0.0]
    assert module["idle"].grad is None
    assert not norm.item() <= 10.0


@pytest.mark.parametrize("clip", [None, 1.0])
@pytest.mark.parametrize("gradient", [[6.0, 8.0], [0.3, 0.4], [0.0, 0.0]])
def test_any_other_stays_as_it_was(gradient: list[float], clip: float | None) -> None:
    """The limit itself, 10, is not yet too long."""
    with_limit, without = net(gradient), net(gradient)
    for module, limit in ((with_limit, 10.0), (without, None)):
        config = OptimConfig(clip_norm=clip, skip_norm=limit)
        assert clip_gradients(config, build_optimizer(config, module)).item() == pytest.approx(math.hypot(*gradient))
    for name in ("a", "b"):
        assert torch.equal(with_limit[name].grad, without[name].grad)
    found = [with_limit["a"].grad.item(), with_limit["b"].grad.item()]
    factor = 1.0 if clip is None else min(1.0, clip / max(math.hypot(*gradient), 1e-6))
    assert found == pytest.approx([value * factor for value in gradient], rel=1e-5)


def test_a_limit_must_be_above_zero() -> None:
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(ConfigError, match=rf"skip_norm is {wrong}; allowed: above 0"):
            OptimConfig(skip_norm=wrong)


def interval(norms: list[float], limit: float | None = 10.0) -> IntervalMetrics:
    made = IntervalMetrics(torch.device("cpu"))
    for norm in norms:
        made.add_batch(Loss(torch.tensor(2.0), 5))
        made.add_step(torch.tensor(norm), limit)
    return made


def test_skipped_gradients_are_counted_and_not_in_the_mean() -> None:
    found = interval([1.0, 11.0, 3.0, math.inf, math.nan, 10.0])
    assert (found.steps, int(found.skipped)) == (6, 3) and found.finite(SingleProcess())
    line = found.summary(SingleProcess())
    assert (line["gradient_norm"], line["gradients_skipped"], line["loss"]) == (pytest.approx(14 / 3), 3, 2.0)
    assert "gradients_skipped" not in interval([1.0, 9.0]).summary(SingleProcess())
    usual = interval([1.0, 11.0], limit=None)
    assert usual.summary(SingleProcess())["gradient_norm"] == 6.0 and int(usual.skipped) == 0
    assert not interval([math.inf], limit=None).finite(SingleProcess())
    assert interval([11.0]).summary(SingleProcess())["gradient_norm"] == 0.0


def test_an_interval_is_put_back() -> None:
    found, again = interval([1.0, 11.0, 12.0]), interval([20.0])
    again.restore(json.loads(json.dumps(found.state())))
    for each in (found, again):
        each.add_step(torch.tensor(30.0), 10.0)
    assert again.state() == found.state() and again.state()["skipped"] == 3
    again.clear()
    assert again.state()["skipped"] == again.state()["steps"] == 0


@pytest.mark.parametrize(
    ("norms", "stuck"),
    [
        ([11.0] * 19, False),
        ([11.0] * 20, True),
        ([math.nan] * 30, True),
        ([1.0] + [11.0] * 20, True),
        ([11.0] * 25 + [1.0], False),
        ([11.0] * 19 + [1.0] + [11.0] * 19, False),
    ],
)
def test_stuck_after_twenty(norms: list[float], stuck: bool) -> None:
    assert interval(norms).stuck() is stuck
    assert not interval(norms, limit=None).stuck()


class Steep(toy.ToyLearner):
    """Some losses have a slope of no use; their values are as ever."""

    def __init__(self, slope: float, at: set[int] | None, **options: Any) -> None:
        super().__init__(**options)
        self.slope, self.at = slope, at

    def loss(self, batch: Tensor) -> Loss:
        loss = super().loss(batch)
        if self.at is None or self.losses in self.at:
            weight = self.table.weight
            loss.total = loss.total + ((weight - weight.detach()) * self.slope).nan_to_num(0.0, 0.0, 0.0).sum()
        return loss


def steep(slope: float, *at: int, **options: Any) -> Steep:
    torch.manual_seed(3)
    return Steep(slope, set(at) or None, **options)


def fit(out: Path, learner: toy.ToyLearner, *, skip_norm: float | None = 100.0, **changes: Any) -> TrainOutput:
    config = toy.config(optim=OptimConfig(learning_rate=0.01, skip_norm=skip_norm), **changes)
    return Trainer(config, toy.RUN).fit(learner, toy.ToyBatches(), toy.dev(), out)


def test_the_log_tells_where_some_were_skipped(tmp_path: Path) -> None:
    fit(tmp_path / "steep", steep(1e6, 6, 8, 17), steps=20)
    lines = {line["step"]: line for line in log(tmp_path / "steep") if line["kind"] == "train"}
    assert {step: line.get("gradients_skipped") for step, line in lines.items()} == {4: None, 8: 2, 12: None, 16: None, 20: 1}
    assert all(0 < line["gradient_norm"] < 100 for line in lines.values())
    fit(tmp_path / "usual", toy.learner(), steps=20)
    assert all("gradients_skipped" not in line for line in log(tmp_path / "usual"))


def test_a_limit_that_nothing_reaches_changes_nothing(tmp_path: Path) -> None:
    for name, limit in (("with", 100.0), ("without", None)):
        fit(tmp_path / name, toy.learner(), skip_norm=limit)
    assert log(tmp_path / "with") == log(tmp_path / "without")
    for name, value in toy.best(tmp_path / "with").items():
        assert torch.equal(value, toy.best(tmp_path / "without")[name])


def test_a_gradient_that_is_no_number_is_passed_over(tmp_path: Path) -> None:
    result = fit(tmp_path, steep(math.inf, 5, 6), steps=20)
    assert result.ended == "budget" and math.isfinite(result.scores["perplexity"])
    assert [line.get("gradients_skipped") for line in log(tmp_path) if line["kind"] == "train"] == [None, 2, None, None, None]
    with pytest.raises(DivergedError, match="not finite at step 5"):
        fit(tmp_path / "without", steep(math.inf, 5, 6), steps=20, skip_norm=None)


def test_a_run_taken_up_between_two_lines_counts_on(tmp_path: Path) -> None:
    fit(tmp_path / "whole", steep(1e6, 5, 8))
    with pytest.raises(DivergedError):
        fit(tmp_path / "parts", steep(1e6, 5, 8, broken_at=8))  # the last checkpoint is of step 7
    fit(tmp_path / "parts", steep(1e6, 5, 8))
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    assert [line["gradients_skipped"] for line in log(tmp_path / "parts") if line["step"] == 8] == [2]


def test_a_run_that_can_follow_nothing_stops(tmp_path: Path) -> None:
    with pytest.raises(DivergedError) as told:
        fit(tmp_path, steep(1e6), log_every=100)
    said = "the last gradients were all skipped, longer than 100 at step 20; the last good checkpoint, of step 14, is kept"
    assert said in str(told.value) and "give a learning_rate below 0.01" in str(told.value)


def test_it_stops_however_often_it_logs(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match="the last gradients were all skipped"):
        fit(tmp_path, steep(1e6), log_every=4)


def test_a_run_that_has_learned_for_half_of_its_time_keeps_its_best_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    result = fit(tmp_path, steep(1e6, *range(40, 100)), steps=70)
    assert (result.ended, result.steps) == ("gradients", 59)
    assert result.best_step is not None and result.best_step < 59 and math.isfinite(result.scores["perplexity"])
    assert f"at step 59: the run ends here with its best model, of step {result.best_step}; " in caplog.text
    assert "with a learning_rate below 0.01 may go on" in caplog.text
    again = fit(tmp_path, steep(1e6, *range(40, 100)), steps=70)
    assert (again.ended, again.steps) == ("gradients", 59)
    with pytest.raises(DivergedError, match="all skipped, longer than 100 at step 59; the last good checkpoint"):
        fit(tmp_path / "early", steep(1e6, *range(40, 100)), steps=90)
