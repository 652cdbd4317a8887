"""Output layers of all kinds, against NumPy and against PyTorch's gradients of the plain formulas."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.nn.output import full as output
from polyseme.nn.output.adaptive import AdaptiveSoftmax, cutoffs
from polyseme.nn.output.full import FullSoftmax, OutputLayer, TiedSoftmax

KINDS: dict[str, Callable[[], OutputLayer]] = {
    "full": lambda: FullSoftmax(50, 6),
    "tied": lambda: TiedSoftmax(nn.Embedding(50, 6).double()),
    "adaptive": lambda: AdaptiveSoftmax(50, 6),
    "three clusters": lambda: AdaptiveSoftmax(50, 6, (7, 8, 30, 50)),
    "two words": lambda: AdaptiveSoftmax(2, 6),
}


@pytest.fixture(params=KINDS)
def layer(request: pytest.FixtureRequest) -> OutputLayer:
    torch.manual_seed(0)
    made = KINDS[request.param]().double()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def weights(layer: OutputLayer) -> list[Tensor]:
    return [*layer.parameters(), *([layer.weight] if isinstance(layer, TiedSoftmax) else [])]


def numbers(layer: OutputLayer) -> dict[str, np.ndarray]:
    named = layer.state_dict() | ({"weight": layer.weight} if isinstance(layer, TiedSoftmax) else {})
    return {name: value.detach().numpy() for name, value in named.items()}


def by_hand(layer: OutputLayer, states: np.ndarray) -> np.ndarray:
    """Probabilities of all words, (n, vocabulary)."""

    def softmax(scores: np.ndarray) -> np.ndarray:
        return np.exp(scores) / np.exp(scores).sum(1, keepdims=True)

    have = numbers(layer)
    if "weight" in have:
        return softmax(states @ have["weight"].T + have["bias"])
    head = softmax(states @ have["head.weight"].T + have["head.bias"])
    tails = sum(name.endswith("projection.weight") for name in have)
    columns = list(head[:, : head.shape[1] - tails].T)
    for i in range(tails):
        small = states @ have[f"tails.{i}.projection.weight"].T
        inside = softmax(small @ have[f"tails.{i}.words.weight"].T + have[f"tails.{i}.words.bias"])
        columns += [head[:, head.shape[1] - tails + i] * column for column in inside.T]
    return np.stack(columns, axis=1)


def test_probabilities_by_hand(layer: OutputLayer) -> None:
    states = torch.randn(9, 6, dtype=torch.float64)
    with torch.no_grad():
        found = layer(states)
        expected = by_hand(layer, states.numpy())
        assert found.shape == (9, layer.size) and layer.dim == 6
        np.testing.assert_allclose(found.exp().numpy(), expected, rtol=1e-9)
        np.testing.assert_allclose(found.exp().sum(1).numpy(), 1.0, rtol=1e-12)
        rows, targets = torch.arange(layer.size).repeat(9, 1).T % 9, torch.arange(layer.size).repeat(9, 1).T  # every word
        for at_once in (1, 130, 1 << 24):
            some = layer.log_probs(states[rows.flatten()], targets.flatten(), numbers=at_once)
            np.testing.assert_allclose(some.exp().numpy(), expected[rows.flatten(), targets.flatten()], rtol=1e-9)
        assert layer.log_probs(states[:0], targets[:0, 0]).shape == (0,)


@pytest.mark.parametrize("scores", [1, 130, 1 << 24])
def test_sliced_loss_and_gradients(layer: OutputLayer, scores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "SCORES", scores)
    states, targets = torch.randn(9, 6, dtype=torch.float64, requires_grad=True), torch.randint(layer.size, (9,))
    expected = F.nll_loss(layer(states), targets, reduction="sum") * 0.3
    wanted = torch.autograd.grad(expected, [states, *weights(layer)])
    total, each = layer.loss(states, targets)
    found = total * 0.3
    torch.testing.assert_close(each.sum(), total.detach())
    assert not each.requires_grad
    assert found.item() == pytest.approx(-0.3 * np.log(by_hand(layer, states.detach().numpy())[range(9), targets]).sum())
    for a, b in zip(torch.autograd.grad(found, [states, *weights(layer)]), wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-6)


def test_every_weight_has_a_gradient_whatever_the_words(layer: OutputLayer) -> None:
    states = torch.randn(2, 6, dtype=torch.float64)
    layer.loss(states, torch.zeros(2, dtype=torch.long))[0].backward()
    assert all(weight.grad is not None for weight in weights(layer))


def test_the_table_is_looked_at_and_not_owned() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(50, 6)
            self.output = TiedSoftmax(self.table)

    model = Model()
    for each in (model, copy.deepcopy(model), copy.deepcopy(model).double(), copy.deepcopy(model).to("cpu")):
        assert each.output.weight is each.table.weight
        assert [name for name, _ in each.named_parameters()] == ["table.weight", "output.bias"] == list(each.state_dict())
    assert copy.deepcopy(model).table.weight is not model.table.weight
    again = Model()
    again.load_state_dict(model.state_dict(), assign=True)
    assert again.output.weight is again.table.weight and torch.equal(again.output.weight, model.table.weight)


def test_adaptive_is_pytorchs_own_where_that_has_weights() -> None:
    torch.manual_seed(0)
    theirs = nn.AdaptiveLogSoftmaxWithLoss(32, 50, [10, 30], div_value=4.0, head_bias=True).double()
    ours = AdaptiveSoftmax(50, 32, (10, 30, 50)).double()
    with torch.no_grad():
        ours.head.weight.copy_(theirs.head.weight)
        ours.head.bias.copy_(theirs.head.bias.normal_())
        for tail, (down, words) in zip(ours.tails, theirs.tail, strict=True):
            tail.projection.weight.copy_(down.weight)
            tail.words.weight.copy_(words.weight)
        states = torch.randn(9, 32, dtype=torch.float64)
        torch.testing.assert_close(ours(states), theirs.log_prob(states))


def test_cutoffs() -> None:
    assert cutoffs(800_000) == (40_000, 160_000, 800_000) and cutoffs(1000) == (50, 200, 1000)
    assert cutoffs(999) == (499, 999) and cutoffs(4) == (2, 4)
    with pytest.raises(ConfigError, match=r"the clusters end at \(3, 3, 9\), for 9 words; expected two or more increasing"):
        AdaptiveSoftmax(9, 6, (3, 3, 9))
    with pytest.raises(ConfigError, match="for 9 words"):
        AdaptiveSoftmax(9, 6, (3, 8))


def test_a_vocabulary_of_no_round_size_in_16_bits() -> None:
    """The rows that alignment adds have no probability and no gradient."""
    torch.manual_seed(3)
    layer = FullSoftmax(53, 16)
    states, targets = torch.randn(40, 16).bfloat16().requires_grad_(), torch.randint(53, (40,))
    total, each = layer.loss(states, targets)
    exact = states.detach().float().requires_grad_()
    plain = F.cross_entropy(F.linear(exact, layer.weight, layer.bias), targets, reduction="none")
    torch.testing.assert_close(each, plain.detach(), rtol=2e-2, atol=2e-2)
    found = torch.autograd.grad(total, [layer.weight, layer.bias, states])
    expected = torch.autograd.grad(plain.sum(), [layer.weight, layer.bias, exact])
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert F.cosine_similarity(one.float().flatten(), other.flatten(), dim=0).item() > 0.999
