"""Dropout on a CPU: as many numbers are dropped as PyTorch drops, the rest is scaled, and gradients see the same mask."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from polyseme.nn.dropout import Dropout

SHAPE = (16, 128, 64)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.85])
def test_numbers_are_dropped_and_scaled(p: float) -> None:
    torch.manual_seed(0)
    x = torch.rand(SHAPE) + 1.0
    found = Dropout(p)(x)
    dropped = found == 0
    share = dropped.float().mean().item()
    deviation = (p * (1 - p) / x.numel()) ** 0.5
    assert abs(share - p) < 5 * deviation
    assert torch.allclose(found[~dropped], x[~dropped] / (1 - p), rtol=1e-3)  # the probability has 16 bits
    for dim in range(3):  # no row is dropped more than others
        rows = dropped.float().mean([other for other in range(3) if other != dim])
        assert (rows - p).abs().max() < 6 * (p * (1 - p) * len(rows) / x.numel()) ** 0.5
    assert abs(found.mean() / x.mean() - 1) < 0.02


def test_gradients_see_the_same_mask() -> None:
    x = torch.rand(SHAPE, requires_grad=True)
    found = Dropout(0.3)(x)
    found.backward(torch.ones(SHAPE))
    assert x.grad is not None
    assert torch.allclose(x.grad * x, found)


def test_the_seed_decides() -> None:
    layer, x = Dropout(0.3), torch.ones(SHAPE)
    torch.manual_seed(4)
    first, second = layer(x), layer(x)
    torch.manual_seed(4)
    assert torch.equal(layer(x), first) and not torch.equal(first, second)


def test_edges() -> None:
    x = torch.rand(SHAPE)
    assert Dropout(0.4).eval()(x) is x
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()
    assert Dropout(0.5)(torch.zeros(0, 4, 8)).shape == (0, 4, 8)
    strided = torch.rand(64, 128, 16).transpose(0, 2)
    found = Dropout(0.5)(strided)
    assert torch.allclose(found[found != 0], (strided * 2)[found != 0])
    half = Dropout(0.5)(x.bfloat16())
    assert half.dtype == torch.bfloat16


def test_small_tensors_are_pytorchs() -> None:
    torch.manual_seed(1)
    found = Dropout(0.5)(torch.ones(4, 8))
    torch.manual_seed(1)
    assert torch.equal(nn.Dropout(0.5)(torch.ones(4, 8)), found)
