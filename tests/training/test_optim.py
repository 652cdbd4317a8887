from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from polyseme.base.config import ConfigError
from polyseme.training.base import LrMultiplier
from polyseme.training.optim import (
    build_optimizer,
    clip_gradients,
    optimizer_tensors,
    restore_optimizer,
    scheduled_learning_rate,
    set_learning_rate,
)
from polyseme.training.optim_config import OptimConfig


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 2).double()


def gradients(steps: int) -> list[tuple[np.ndarray, np.ndarray]]:
    chance = np.random.default_rng(0)
    return [(chance.normal(size=(2, 3)), chance.normal(size=2)) for _ in range(steps)]


def train(config: OptimConfig, steps: int) -> nn.Module:
    module = net()
    optimizer = build_optimizer(config, module)
    for number, (weight, bias) in enumerate(gradients(steps)):
        module.weight.grad, module.bias.grad = torch.tensor(weight), torch.tensor(bias)
        clip_gradients(config, optimizer)
        set_learning_rate(optimizer, scheduled_learning_rate(config, number, steps))
        optimizer.step()
    return module


def clipped(pair: tuple[np.ndarray, np.ndarray], limit: float) -> list[np.ndarray]:
    norm = math.sqrt(sum(float((part**2).sum()) for part in pair))
    return [part * min(1.0, limit / (norm + 1e-6)) for part in pair]


def test_adagrad_as_the_paper_has_it() -> None:
    config = OptimConfig(optimizer="adagrad", learning_rate=0.2, warmup=0.0, decay="constant", clip_norm=None)
    expected = [parameter.detach().numpy().copy() for parameter in net().parameters()]
    sums = [np.ones_like(value) for value in expected]
    for pair in gradients(30):
        for value, total, gradient in zip(expected, sums, pair, strict=True):
            total += gradient**2
            value -= 0.2 * gradient / np.sqrt(total)
    for found, value in zip(train(config, 30).parameters(), expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), value, rtol=1e-12)


def test_adamw_with_clip_decay_and_schedule() -> None:
    config = OptimConfig(learning_rate=0.1, weight_decay=0.5, betas=(0.8, 0.9), warmup=0.25, decay="cosine", clip_norm=0.7)
    expected = [parameter.detach().numpy().copy() for parameter in net().parameters()]
    first, second = ([np.zeros_like(value) for value in expected] for _ in range(2))
    for number, pair in enumerate(gradients(16)):
        rate = 0.1 * (number + 1) / 5 if number < 4 else 0.05 * (1 + math.cos(math.pi * (number - 4) / 12))
        for i, gradient in enumerate(clipped(pair, 0.7)):
            first[i] = 0.8 * first[i] + 0.2 * gradient
            second[i] = 0.9 * second[i] + 0.1 * gradient**2
            expected[i] *= 1 - rate * (0.5 if i == 0 else 0.0)  # the bias does not decay
            mean, square = first[i] / (1 - 0.8 ** (number + 1)), second[i] / (1 - 0.9 ** (number + 1))
            expected[i] -= rate * mean / (np.sqrt(square) + 1e-8)
    for found, value in zip(train(config, 16).parameters(), expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), value, rtol=1e-10)


def test_schedules_by_hand() -> None:
    half = {"learning_rate": 2.0, "warmup": 0.5}
    for decay, expected in {
        "linear": [0.4, 0.8, 1.2, 1.6, 2.0, 1.5, 1.0, 0.5, 0.0],
        "cosine": [0.4, 0.8, 1.2, 1.6, 2.0, 1 + math.sqrt(0.5), 1.0, 1 - math.sqrt(0.5), 0.0],
        "constant": [0.4, 0.8, 1.2, 1.6, 2.0, 2.0, 2.0, 2.0, 2.0],
    }.items():
        config = OptimConfig.from_dict({**half, "decay": decay})
        assert [scheduled_learning_rate(config, step, 8) for step in range(9)] == pytest.approx(expected)
    assert scheduled_learning_rate(OptimConfig(learning_rate=2.0, warmup=0.0), 0, 10) == 2.0
    assert scheduled_learning_rate(OptimConfig(), 150, 100) == 0.0  # words overshoot by part of a batch


def test_frozen_weights_are_left_out() -> None:
    module = net()
    module.weight.requires_grad_(False)
    (group,) = build_optimizer(OptimConfig(), module).param_groups
    assert (group["names"], group["weight_decay"]) == (["bias"], 0.0)


def resumed(config: OptimConfig, *, frozen: tuple[bool, bool]) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Four steps, resumed after three; whether the bias is frozen before and after."""
    tensors: dict[str, torch.Tensor] = {}
    module = net()
    pairs = gradients(4)
    for part, is_frozen in zip((pairs[:3], pairs[3:]), frozen, strict=True):
        module.bias.requires_grad_(not is_frozen)
        optimizer = build_optimizer(config, module)
        restore_optimizer(optimizer, tensors)
        for weight, bias in part:
            module.weight.grad, module.bias.grad = torch.tensor(weight), None if is_frozen else torch.tensor(bias)
            optimizer.step()
        tensors = {name: value.clone() for name, value in optimizer_tensors(optimizer).items()}
    return module, optimizer


@pytest.mark.parametrize("name", ["adamw", "muon", "adagrad", "asgd"])
def test_other_weights_may_be_frozen_when_a_run_is_resumed(name: str) -> None:
    config = OptimConfig.from_dict({"optimizer": name, "learning_rate": 0.1, "weight_decay": 0.0, "clip_norm": None})
    whole, _ = resumed(config, frozen=(False, False))
    start, gradient = net().bias.detach().numpy(), gradients(4)[3][1]
    for frozen in ((False, True), (True, False)):
        module, optimizer = resumed(config, frozen=frozen)
        assert torch.equal(module.weight, whole.weight)  # goes on as if nothing had happened
        if frozen == (False, True):
            assert {path.partition("/")[0] for path in optimizer_tensors(optimizer)} == {"weight"}
            continue
        first = {"adagrad": gradient / np.sqrt(1 + gradient**2), "asgd": gradient}.get(name, gradient / (abs(gradient) + 1e-8))
        np.testing.assert_allclose(module.bias.detach().numpy(), start - 0.1 * first, rtol=1e-6)
        if name == "asgd":  # the average of one step is that step
            assert torch.equal(optimizer.state[module.bias]["average"], module.bias)


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "adagrad"])
@pytest.mark.parametrize("number", [1.0, math.inf, math.nan])
def test_weights_that_wait_are_not_touched_by_their_gradients(optimizer: str, number: float) -> None:
    module = net()
    before = module.weight.detach().clone()
    config = OptimConfig.from_dict({"optimizer": optimizer, "skip_norm": 100.0})
    made = build_optimizer(config, module, [LrMultiplier("weight", start=0.5)])
    module.weight.grad, module.bias.grad = torch.full((2, 3), number).double(), torch.ones(2).double()
    set_learning_rate(made, 0.1, done=0.0)
    assert clip_gradients(config, made).item() == pytest.approx(math.sqrt(2))
    remembered = {name: value.clone() for name, value in made.state.get(module.weight, {}).items()}
    made.step()
    assert torch.equal(module.weight, before) and bool((module.bias != net().bias).all())
    assert all(torch.equal(value, remembered[name]) for name, value in made.state.get(module.weight, {}).items())


def test_all_mistakes_at_once() -> None:
    with pytest.raises(ConfigError, match=r"learning_rate is 0.*initial_accumulator is 0.*warmup is 1.5.*clip_norm is -1"):
        OptimConfig(optimizer="adagrad", learning_rate=0, warmup=1.5, clip_norm=-1, initial_accumulator=0)


@pytest.mark.parametrize(
    "values", [{"weight_decay": -5.0}, {"weight_decay": math.nan}, {"betas": (0.9, 1.5)}, {"epsilon": -1.0}]
)
def test_numbers_that_no_optimizer_takes(values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(values))} (is|are) "):
        OptimConfig(**values)


def test_the_slanted_triangle_is_the_published_one() -> None:
    """Howard and Ruder 2018: T steps, cut_frac 0.1, ratio 32."""
    config, steps = OptimConfig(learning_rate=0.01, warmup=0.1, decay="slanted"), 200
    cut = math.floor(steps * 0.1)
    for step in range(steps):
        p = step / cut if step < cut else 1 - (step - cut) / (cut * (1 / 0.1 - 1))
        assert scheduled_learning_rate(config, step, steps) == pytest.approx(0.01 * (1 + p * 31) / 32)
    assert (
        scheduled_learning_rate(config, 0, steps) == pytest.approx(0.01 / 32)
        and scheduled_learning_rate(config, cut, steps) == 0.01
    )
    with pytest.raises(ConfigError, match="needs a warmup above 0"):
        OptimConfig(decay="slanted", warmup=0.0)
