"""Muon against the singular value decomposition and PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from polyseme.nn.output.full import FullSoftmax
from polyseme.training.muon import MOMENTUM, Muon, hidden_matrices, orthogonalize
from polyseme.training.optim import build_optimizer, optimizer_tensors, restore_optimizer
from polyseme.training.optim_config import OptimConfig


@pytest.mark.parametrize("shape", [(12, 12), (40, 8), (8, 40)])
def test_orthogonalized_matrices_keep_their_singular_vectors(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    left, sizes, right = torch.linalg.svd(matrix, full_matrices=False)
    assert sizes.max() > 1.5 * sizes.min()
    core = left.T @ orthogonalize(matrix.float()).double() @ right.T
    assert (core.diagonal() - 1.0).abs().max() < 0.35
    torch.testing.assert_close(core, torch.diag(core.diagonal()), atol=1e-4, rtol=0)


def test_the_steps_are_those_of_pytorch() -> None:
    theirs = pytest.importorskip("torch.optim._muon", reason="this PyTorch has no Muon").Muon
    ours, reference = (nn.Linear(20, 50, bias=False) for _ in range(2))
    reference.load_state_dict(ours.state_dict())
    start = ours.weight.detach().clone()
    group = {"params": [ours.weight], "orthogonal": True}
    pair = (
        Muon([group], lr=0.01, weight_decay=0.1),
        theirs(reference.parameters(), lr=0.01, weight_decay=0.1, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw"),
    )
    inputs = torch.randn(5, 30, 20, generator=torch.Generator().manual_seed(2))
    for batch in inputs:
        for layer, optimizer in zip((ours, reference), pair, strict=True):
            optimizer.zero_grad()
            layer(batch).square().sum().backward()
            optimizer.step()
    moved = (ours.weight - start).norm()
    assert moved > 0.1
    assert (ours.weight - reference.weight).norm() < 0.03 * moved  # theirs computes in bf16


def test_only_matrices_between_vectors_are_orthogonalized() -> None:
    learner = nn.ModuleDict({"words": nn.Embedding(9, 4), "hidden": nn.Linear(4, 6), "output": FullSoftmax(9, 6)})
    assert hidden_matrices(learner) == {"hidden.weight"}
    optimizer = build_optimizer(OptimConfig(optimizer="muon"), learner)
    assert [(group["names"], group["orthogonal"]) for group in optimizer.param_groups] == [
        (["words.weight", "output.weight"], False),
        (["hidden.weight"], True),
        (["hidden.bias", "output.bias"], False),
    ]


def test_frozen_groups_stay() -> None:
    layer = nn.Linear(3, 5, bias=False)
    optimizer = build_optimizer(OptimConfig(optimizer="muon"), layer)
    before = layer.weight.detach().clone()
    layer(torch.ones(2, 3)).sum().backward()
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.step()
    torch.testing.assert_close(layer.weight, before, atol=0, rtol=0)


def test_a_saved_state_goes_on_as_if_never_stopped() -> None:
    def learner() -> nn.Sequential:
        torch.manual_seed(3)
        return nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 6))

    def step(module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        module(torch.arange(7)).square().sum().backward()
        optimizer.step()

    config = OptimConfig(optimizer="muon", learning_rate=0.05)
    whole = learner()
    first = build_optimizer(config, whole)
    step(whole, first)
    resumed = learner()
    resumed.load_state_dict(whole.state_dict())
    second = build_optimizer(config, resumed)
    restore_optimizer(second, {name: value.clone() for name, value in optimizer_tensors(first).items()})
    for module, optimizer in ((whole, first), (resumed, second)):
        step(module, optimizer)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    fresh = build_optimizer(config, resumed)
    assert "1.weight/momentum" in optimizer_tensors(first) and not optimizer_tensors(fresh)
