"""The linear probe, on classes that can and cannot be told apart."""

import numpy as np
import pytest
import torch

from polyseme.analysis.config import ProbeConfig
from polyseme.analysis.linear_probe import _moments, fit_linear_probe
from polyseme.base.config import ConfigError

QUICK = ProbeConfig(epochs=10, min_steps=80, batch_size=64, learning_rate=2e-2, mix_learning_rate=5e-2)


def data(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Layer 0 is noise; layer 1 holds the class, far from zero and tiny, so that only standardised inputs show it."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, count)
    stack = random.normal(size=(2, count, 5)).astype(np.float32)
    stack[1] = 0.01 * stack[1] + 50
    stack[1, :, :3] += 0.1 * np.eye(3, dtype=np.float32)[labels]
    return stack, labels


def test_the_layer_that_knows():
    stack, labels = data()
    right = [np.mean(fit_linear_probe(stack[n : n + 1], labels, 3, QUICK).predict(stack[n : n + 1]) == labels) for n in (0, 1)]
    assert right[0] < 0.6 and right[1] > 0.99


def test_the_mix_finds_it():
    stack, labels = data()
    probe = fit_linear_probe(stack, labels, 3, QUICK)
    weights = torch.softmax(probe.mix.weights, 0)
    assert np.mean(probe.predict(stack) == labels) > 0.99 and weights[1] > 0.9
    assert fit_linear_probe(stack[:1], labels, 3, QUICK).mix is None


def test_the_optimum_of_one_number():
    """Classes 0 and 1 overlap on one feature: the probe's log odds are those of the counts (1:3 and 3:1)."""
    feature = np.repeat([-1.0, 1.0], 400).astype(np.float32)
    labels = np.concatenate([np.repeat([0, 1], [300, 100]), np.repeat([0, 1], [100, 300])])
    probe = fit_linear_probe(feature[None, :, None], labels, 2, QUICK.replace(weight_decay=0.0, min_steps=200))
    scores = probe(torch.tensor([[[-1.0], [1.0]]])).detach().numpy()
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], [-np.log(3), np.log(3)], atol=0.05)


def test_the_seed_decides():
    stack, labels = data(60)
    one, same, other = (fit_linear_probe(stack, labels, 3, QUICK.replace(seed=seed)).output.weight for seed in (1, 1, 2))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_half_precision_and_moments():
    stack, labels = data()
    mean, deviation = _moments(torch.from_numpy(stack.astype(np.float16)))
    exact = stack.astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(deviation, exact.std(1), rtol=1e-5)
    probe = fit_linear_probe(stack.astype(np.float16), labels, 3, QUICK)
    assert probe.predict(stack.astype(np.float16)).shape == (400,)


def test_a_number_that_never_changes():
    stack, labels = data()
    stack[:, :, 4] = 7
    assert np.mean(fit_linear_probe(stack, labels, 3, QUICK).predict(stack) == labels) > 0.99


def test_bad_settings():
    with pytest.raises(ConfigError, match="allowed: 1 or more"):
        ProbeConfig(epochs=0)
