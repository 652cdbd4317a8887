"""Losses of the output layer: the sliced one against PyTorch's own, the sampled one against the published formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polyseme.nn import output
from polyseme.nn.output import FullSoftmax, SampledSoftmax


@pytest.fixture
def layer() -> FullSoftmax:
    torch.manual_seed(0)
    layer = FullSoftmax(50, 6)
    torch.nn.init.normal_(layer.bias)
    return layer.double()


@pytest.mark.parametrize("scores", [1, 130, 1 << 24])
def test_sliced_loss_and_gradients(layer: FullSoftmax, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "SCORES", scores)
    states, targets = torch.randn(9, 6, dtype=torch.float64, requires_grad=True), torch.randint(50, (9,))
    expected = F.cross_entropy(F.linear(states, layer.weight, layer.bias), targets, reduction="sum") * 0.3
    wanted = torch.autograd.grad(expected, [states, layer.weight, layer.bias])
    found = layer.loss(states, targets) * 0.3
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-6)
    for a, b in zip(torch.autograd.grad(found, [states, layer.weight, layer.bias]), wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_draws_follow_the_rank(layer: FullSoftmax) -> None:
    torch.manual_seed(1)
    sampled = SampledSoftmax(layer, 8)
    hits, expected = np.zeros(50), np.zeros(50)
    for _ in range(3000):
        ids, tries = sampled.draw()
        assert len(set(ids.tolist())) == 8 and tries >= 8
        hits[ids.numpy()] += 1
        expected += np.exp(sampled.log_expected(torch.arange(50), tries).numpy())
    # the correction takes the tries as given, which is what TensorFlow does too: an approximation, near for all ranks
    np.testing.assert_allclose(hits / 3000, expected / 3000, atol=0.04)
    assert hits[0] > hits[10] > hits[49]


def test_expected_counts_by_hand(layer: FullSoftmax) -> None:
    found = np.exp(SampledSoftmax(layer, 8).log_expected(torch.tensor([0, 7]), 20).numpy())
    chance = [np.log((r + 2) / (r + 1)) / np.log(51) for r in (0, 7)]
    np.testing.assert_allclose(found, [1 - (1 - p) ** 20 for p in chance], rtol=1e-6)


def test_sampled_loss_by_hand(layer: FullSoftmax, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled = SampledSoftmax(layer, 4)
    drawn = torch.tensor([3, 0, 11, 7])
    monkeypatch.setattr(sampled, "draw", lambda: (drawn, 6))
    states, targets = torch.randn(3, 6, dtype=torch.float64), torch.tensor([11, 2, 0])
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    total = 0.0
    for state, target in zip(states.numpy(), targets.tolist(), strict=True):
        ids = [target] + [word for word in drawn.tolist() if word != target]  # accidental hits do not count
        chance = np.log((np.array(ids) + 2.0) / (np.array(ids) + 1.0)) / np.log(51)
        scores = weight[ids] @ state + bias[ids] - np.log(1 - (1 - chance) ** 6)
        total += np.log(np.exp(scores).sum()) - scores[0]
    assert sampled.loss(states, targets).item() == pytest.approx(total, rel=1e-5)


def test_sampling_everything_is_the_full_loss_but_for_the_correction(layer: FullSoftmax) -> None:
    sampled = SampledSoftmax(layer, 1000)
    assert sampled.negatives == 50
    ids, _ = sampled.draw()
    assert sorted(ids.tolist()) == list(range(50))
