"""ASGD against an average that is computed here from all steps, and a run with it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from polyseme.base.errors import PolysemeError
from polyseme.training.asgd import DECAY, averaged_weights
from polyseme.training.optim import build_optimizer, optimizer_tensors, restore_optimizer
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer
from tests.training import toy
from tests.training.compare import newest

ASGD = OptimConfig(optimizer="asgd", learning_rate=0.5, weight_decay=1e-6, decay="constant", warmup=0.0)


def steps(layer: nn.Linear, optimizer: torch.optim.Optimizer, count: int) -> list[torch.Tensor]:
    """Return the weights after each step."""
    seen = []
    for _ in range(count):
        optimizer.zero_grad()
        (layer(torch.ones(4, 3, dtype=layer.weight.dtype)).square().mean() + layer.weight.sin().sum()).backward()
        optimizer.step()
        seen.append(layer.weight.detach().clone())
    return seen


def test_the_average_counts_later_steps_more() -> None:
    torch.manual_seed(1)
    layer = nn.Linear(3, 2).double()
    optimizer = build_optimizer(ASGD, layer)
    seen = steps(layer, optimizer, 40)
    counts = torch.tensor([float(math.comb(step + DECAY - 1, DECAY)) for step in range(1, 41)], dtype=torch.float64)
    expected = (torch.stack(seen) * (counts / counts.sum())[:, None, None]).sum(0)
    assert counts[-7:].sum() > counts.sum() / 2 > counts[-6:].sum()  # the last sixth
    with averaged_weights(optimizer):
        torch.testing.assert_close(layer.weight.detach(), expected)
    assert torch.equal(layer.weight.detach(), seen[-1])


def test_steps_are_those_of_gradient_descent() -> None:
    torch.manual_seed(1)
    ours = nn.Linear(3, 2)
    theirs = nn.Linear(3, 2)
    theirs.load_state_dict(ours.state_dict())
    plain = torch.optim.SGD([{"params": [theirs.weight], "weight_decay": 1e-6}, {"params": [theirs.bias]}], lr=0.5)
    assert torch.equal(steps(ours, build_optimizer(ASGD, ours), 5)[-1], steps(theirs, plain, 5)[-1])


def test_the_average_is_resumed() -> None:
    torch.manual_seed(1)
    whole, resumed = nn.Linear(3, 2), nn.Linear(3, 2)
    first = build_optimizer(ASGD, whole)
    steps(whole, first, 5)
    resumed.load_state_dict(whole.state_dict())
    second = build_optimizer(ASGD, resumed)
    restore_optimizer(second, {name: value.clone() for name, value in optimizer_tensors(first).items()})
    for layer, optimizer in ((whole, first), (resumed, second)):
        steps(layer, optimizer, 3)
    with averaged_weights(first), averaged_weights(second):
        assert torch.equal(whole.weight, resumed.weight)


def test_a_run_evaluates_and_saves_the_average(tmp_path: Path) -> None:
    config = toy.config(steps=30, eval_every=15, optim=ASGD.replace(learning_rate=2.0))
    result = Trainer(config, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path / "whole")
    again = toy.learner()
    again.load_state_dict(toy.best(tmp_path / "whole"))
    with torch.no_grad():
        assert again.eval().evaluate(toy.dev())["perplexity"] == result.best
    best = {name: value.clone() for name, value in again.state_dict().items()}
    assert result.best_step == 30
    last = load_file(newest(tmp_path / "whole", "safetensors"))  # the weights of the last step, from which it would go on
    assert not torch.equal(last["model/table.weight"], best["table.weight"])
    assert torch.equal(last["optimizer/table.weight/average"], best["table.weight"])
    Trainer(config.replace(steps=15), toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path / "half")
    Trainer(config, toy.RUN).fit(toy.learner(), toy.ToyBatches(), toy.dev(), tmp_path / "half", accept_changes=True)
    assert all(torch.equal(value, best[name]) for name, value in toy.best(tmp_path / "half").items())


def test_a_decay_that_would_turn_the_weights_around_is_refused() -> None:
    with pytest.raises(PolysemeError, match=r"weight_decay is 0\.1; allowed with learning_rate 30: below 0\.0333333"):
        OptimConfig(optimizer="asgd", learning_rate=30.0, weight_decay=0.1)
    OptimConfig(optimizer="asgd", learning_rate=30.0, weight_decay=1.2e-6)
