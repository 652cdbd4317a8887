"""The mix against an independent computation from the published formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.errors import UsageError
from polyseme.nn.mix import Mix
from tests.oracle.mix import layer_norm_mix, pad_batch


@pytest.fixture
def batch() -> tuple[list[np.ndarray], torch.Tensor, torch.Tensor, torch.Tensor]:
    """Two sentences with their ends for the oracle, and the same as layers, mask and ends for us."""
    generator = np.random.default_rng(0)
    sentences = [generator.normal(2.0, 3.0, (3, words + 2, 4)) for words in (5, 2)]
    layers = torch.zeros(3, 2, 5, 4, dtype=torch.float64)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    ends = torch.zeros(3, 2, 2, 4, dtype=torch.float64)
    for row, sentence in enumerate(sentences):
        words = sentence.shape[1] - 2
        layers[:, row, :words] = torch.from_numpy(sentence[:, 1:-1])
        layers[:, row, words:] = 99.0  # padding must not count
        mask[row, :words] = True
        ends[:, row] = torch.from_numpy(sentence[:, [0, -1]])
    return sentences, layers, mask, ends


@pytest.mark.parametrize("norm", [None, "bilm", "allennlp"])
@pytest.mark.parametrize(("weights", "gamma"), [([0.1, 0.3, 0.5], 1.1), ([0.2, -0.4, 0.6], 0.88)])
def test_mix(batch: tuple, norm: str | None, weights: list[float], gamma: float) -> None:
    sentences, layers, mask, ends = batch
    mix = Mix(3, norm=norm, weights=weights, gamma=gamma).double()  # type: ignore[arg-type]
    found = mix(layers, mask, ends).detach().numpy()
    padded, padded_mask = pad_batch(sentences)
    expected = layer_norm_mix(padded, np.array(weights), gamma, norm, mask=padded_mask)
    for row, words in enumerate((5, 2)):
        np.testing.assert_allclose(found[row, :words], expected[row], rtol=1e-6)
        assert not found[row, words:].any()


def test_a_mix_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="a mix has 0 layers; allowed: 1 or more"):
        Mix(0)


def test_norms_differ(batch: tuple) -> None:
    _, layers, mask, ends = batch
    a, b = (Mix(3, norm=norm).double()(layers, mask, ends) for norm in ("bilm", "allennlp"))
    assert not torch.allclose(a, b, atol=1e-3)


def test_norm_of_each_word(batch: tuple) -> None:
    _, layers, mask, _ = batch
    found = Mix(3, norm="words").double()(layers, mask).detach()
    words = layers[:, mask].numpy()
    spread = np.sqrt(words.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(found[mask], ((words - words.mean(-1, keepdims=True)) / spread).mean(0), rtol=1e-9)
    alone = Mix(3, norm="words").double()(layers[:, 1:, :2], mask[1:, :2])
    torch.testing.assert_close(alone[0], found[1, :2])  # whatever else the batch holds


def test_equal_weights_are_the_mean(batch: tuple) -> None:
    _, layers, mask, _ = batch
    found = Mix(3)(layers.float(), mask)
    torch.testing.assert_close(found[mask], layers.float().mean(0)[mask])


def test_penalty_is_on_the_raw_weights() -> None:
    assert Mix(3, weights=[1.0, 2.0, 3.0], l2=0.1).penalty().item() == pytest.approx(1.4)


def test_fixed_weights_do_not_learn() -> None:
    assert not any(p.requires_grad for p in Mix(3, learn=False).parameters())
    mix = Mix(3)
    mix(torch.randn(3, 1, 2, 4), torch.ones(1, 2, dtype=torch.bool)).square().sum().backward()
    assert mix.weights.grad is not None and bool(mix.weights.grad.any()) and mix.gamma.grad is not None


def test_dropout_only_in_training() -> None:
    mix = Mix(1, dropout=0.5)
    layers, mask = torch.ones(1, 1, 200, 4), torch.ones(1, 200, dtype=torch.bool)
    assert bool((mix(layers, mask) == 0).any())
    assert bool((mix.eval()(layers, mask) == 1).all())


def test_mistakes() -> None:
    layers, mask = torch.ones(2, 1, 1, 1), torch.ones(1, 1, dtype=torch.bool)
    with pytest.raises(UsageError, match="norm is 'batch'; allowed: words, bilm, allennlp or None"):
        Mix(3, norm="batch")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="got 2 weights for 3 layers"):
        Mix(3, weights=[1.0, 2.0])
    with pytest.raises(UsageError, match="got 2 layers for a mix of 3"):
        Mix(3)(layers, mask)
    with pytest.raises(UsageError, match="needs the begin and end tokens"):
        Mix(2, norm="allennlp")(layers, mask)
