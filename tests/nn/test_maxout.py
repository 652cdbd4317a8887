from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from polyseme.nn.maxout import Maxout


def vectors(rows: int = 6) -> Tensor:
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def test_the_highest_of_the_maps() -> None:
    torch.manual_seed(0)
    layer = Maxout(4, 3, 2)
    found = layer(vectors())
    weight, bias = layer.maps.weight, layer.maps.bias
    for row, output in ((row, output) for row in range(6) for output in range(3)):
        maps = [float(weight[2 * output + piece] @ vectors()[row] + bias[2 * output + piece]) for piece in range(2)]
        assert found[row, output].item() == pytest.approx(max(maps), abs=1e-6)


def test_batch_norm_is_pytorchs() -> None:
    torch.manual_seed(0)
    layer, norm = Maxout(4, 3, 2, batch_norm=True), nn.BatchNorm1d(6, momentum=None)  # None: the mean over all batches
    for scale in range(1, 11):
        maps = scale * vectors() @ layer.maps.weight.T
        torch.testing.assert_close(layer(scale * vectors()), norm(maps).view(6, 3, 2).amax(2))
    torch.testing.assert_close(layer.norm.state_dict(), norm.state_dict())
    norm.momentum = 0.1  # from the eleventh batch on
    torch.testing.assert_close(layer(vectors()), norm(vectors() @ layer.maps.weight.T).view(6, 3, 2).amax(2))
    torch.testing.assert_close(layer.norm.state_dict(), norm.state_dict())
    together = layer.eval()(vectors())
    torch.testing.assert_close(together, norm.eval()(vectors() @ layer.maps.weight.T).view(6, 3, 2).amax(2))
    torch.testing.assert_close(torch.cat([layer(row) for row in vectors().split(1)]), together, atol=1e-6, rtol=0.0)


def test_a_batch_of_one_in_training() -> None:
    layer = Maxout(4, 3, batch_norm=True)
    layer(vectors())
    before = {name: value.clone() for name, value in layer.norm.state_dict().items()}
    found = layer(vectors(1))
    found.sum().backward()
    torch.testing.assert_close(layer.norm.state_dict(), before)
    torch.testing.assert_close(layer.eval()(vectors(1)), found)
    assert layer(vectors(0)).shape == (0, 3)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_gradients_few_bits_and_dropout(batch_norm: bool) -> None:
    layer = Maxout(4, 50, 3, dropout=0.5, batch_norm=batch_norm)
    assert 0.3 < (layer(vectors()) == 0).float().mean() < 0.7
    layer(vectors()).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in layer.parameters())
    whole = layer.eval()(vectors())
    assert bool(whole.all())
    with torch.autocast("cpu", torch.bfloat16):
        few = layer(vectors())
    torch.testing.assert_close(few.float(), whole, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("batch_norm", [False, True])
def test_learns_what_no_linear_layer_can(batch_norm: bool) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(Maxout(2, 8, 4, batch_norm=batch_norm), nn.Linear(8, 1))
    points = torch.randn(64, 2)
    wanted = (points.prod(1) > 0).float()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
    for _ in range(80):
        optimizer.zero_grad()
        scores = network(points).squeeze(1)
        nn.functional.binary_cross_entropy_with_logits(scores, wanted).backward()
        optimizer.step()
    assert ((scores > 0) == wanted.bool()).float().mean() > 0.95
