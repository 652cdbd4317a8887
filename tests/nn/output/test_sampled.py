"""The sampled loss against the published formulas, over weights of its own and over a word table's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from polyseme.base.config import ConfigError
from polyseme.nn.output import sampled as sampled_module
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.nn.output.sampled import SampledSoftmax


@pytest.fixture(params=["full", "tied"])
def layer(request: pytest.FixtureRequest) -> FullSoftmax:
    torch.manual_seed(0)
    made = FullSoftmax(50, 6).double() if request.param == "full" else TiedSoftmax(nn.Embedding(50, 6).double())
    nn.init.normal_(made.bias)
    return made


def test_draws_follow_the_rank() -> None:
    torch.manual_seed(1)
    sampled = SampledSoftmax(FullSoftmax(50, 6), 8)
    hits, expected = np.zeros(50), np.zeros(50)
    for _ in range(1500):
        ids, tries = sampled.draw()
        assert len(set(ids.tolist())) == 8 and tries >= 8
        hits[ids.numpy()] += 1
        expected += np.exp(sampled.log_expected(torch.arange(50), tries).numpy())
    # the correction takes the tries as given, which is what TensorFlow does too: an approximation, near for all ranks
    np.testing.assert_allclose(hits / 1500, expected / 1500, atol=0.04)
    assert hits[0] > hits[10] > hits[49]


@pytest.mark.parametrize(("words", "negatives"), [(50, 8), (50, 49), (700, 300), (5000, 64)])
def test_draws_are_the_first_distinct_ones(words: int, negatives: int) -> None:
    sampled = SampledSoftmax(FullSoftmax(words, 2), negatives)
    for seed in range(5):
        torch.manual_seed(seed)
        ids, tries = sampled.draw()
        torch.manual_seed(seed)
        drawn: list[int] = []
        while len(set(drawn)) < negatives:
            rank = torch.exp(torch.rand(2 * negatives, dtype=torch.float64) * math.log(words + 1)) - 1
            drawn += rank.long().clamp(0, words - 1).tolist()
        assert ids.tolist() == list(dict.fromkeys(drawn))[:negatives]
        assert len(set(drawn[:tries])) == negatives > len(set(drawn[: tries - 1]))


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
    assert sampled.loss(states, targets)[0].item() == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("scores", [1, 8, 1 << 20])
def test_gradients_of_slices_are_those_of_the_whole(layer: FullSoftmax, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled_module, "SCORES_CPU", scores)
    loss = SampledSoftmax(layer, 4)
    drawn, tries = torch.tensor([3, 0, 11, 7]), 6
    monkeypatch.setattr(loss, "draw", lambda: (drawn, tries))
    states, targets = torch.randn(5, 6, dtype=torch.float64, requires_grad=True), torch.tensor([11, 2, 0, 3, 40])
    own = (states * layer.weight[targets]).sum(1) + layer.bias[targets] - loss.log_expected(targets, tries)
    others = states @ layer.weight[drawn].T + layer.bias[drawn] - loss.log_expected(drawn, tries)
    others = others.masked_fill(drawn == targets[:, None], -torch.inf)
    whole = torch.logsumexp(torch.cat([own[:, None], others], 1), 1) - own
    total, each = loss.loss(states, targets)
    torch.testing.assert_close(each, whole.detach())
    parts = [states, layer.weight, layer.bias]
    for one, other in zip(*(torch.autograd.grad(0.3 * x, parts) for x in (total, whole.sum())), strict=True):
        torch.testing.assert_close(one, other)


def test_sampling_everything_is_the_full_loss_but_for_the_correction(layer: FullSoftmax) -> None:
    sampled = SampledSoftmax(layer, 1000)
    assert sampled.negatives == 50
    ids, _ = sampled.draw()
    assert sorted(ids.tolist()) == list(range(50))


def test_gradients_are_those_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    table = nn.Embedding(50, 6)
    sampled = SampledSoftmax(TiedSoftmax(table), 4)
    monkeypatch.setattr(sampled, "draw", lambda: (torch.tensor([3, 0, 11, 7]), 6))
    sampled.loss(torch.randn(2, 6), torch.tensor([11, 2]))[0].backward()
    assert table.weight.grad is not None
    assert table.weight.grad.abs().sum(1).nonzero()[:, 0].tolist() == [0, 2, 3, 7, 11]


def test_what_cannot_be_sampled() -> None:
    with pytest.raises(ConfigError, match=r"needs a FullSoftmax or TiedSoftmax; got AdaptiveSoftmax"):
        SampledSoftmax(AdaptiveSoftmax(50, 6), 4)
    with pytest.raises(ConfigError, match="negatives is 0; allowed: 1 or more"):
        SampledSoftmax(FullSoftmax(50, 6), 0)
