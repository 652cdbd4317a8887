"""Checks of the exercises of chapter 7."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import torch

import polyseme


def test_scalar_mix(answers: ModuleType) -> None:
    random = np.random.default_rng(0)
    layers, weights = random.normal(size=(3, 5, 4)), np.array([0.5, -1.0, 2.0])
    mix = polyseme.Mix(3, weights=weights.tolist(), gamma=0.7)
    with torch.no_grad():
        expected = mix(torch.from_numpy(layers).float()[:, None], torch.ones(1, 5, dtype=torch.bool))[0].numpy()
    assert np.allclose(answers.scalar_mix(layers, weights, 0.7), expected, atol=1e-5)
    large = answers.scalar_mix(layers, np.array([1000.0, 0.0, 0.0]), 1.0)
    assert np.allclose(large, layers[0]), "a very large weight takes all, and does not overflow"


def test_batch_norm_of_layer(answers: ModuleType) -> None:
    random = np.random.default_rng(1)
    layer = random.normal(3.0, 2.0, size=(2, 4, 6))
    mask = np.array([[True, True, True, True], [True, True, False, False]])
    layer[~mask] = 1e6
    found = answers.batch_norm_of_layer(layer, mask)
    assert found.shape == layer.shape
    assert np.all(found[~mask] == 0), "padding is zero"
    assert abs(found[mask].mean()) < 1e-9 and abs(found[mask].std() - 1) < 1e-6, "padding does not count"
    expected = (layer[mask] - layer[mask].mean()) / layer[mask].std()
    assert np.allclose(found[mask], expected), "one mean and one variance for the layer, not one for each word"


def test_layer_shares(answers: ModuleType) -> None:
    layers = np.zeros((2, 3, 2))
    layers[0, :, 0] = 1.0
    layers[1, :, 1] = 3.0
    assert np.allclose(answers.layer_shares(layers, np.zeros(2)), [0.25, 0.75]), "equal weights are not equal shares"
    equal = answers.layer_shares(layers, np.array([np.log(3.0), 0.0]))
    assert np.allclose(equal, [0.5, 0.5])
    layers[0, 1] = [-5.0, 0.0]
    assert np.allclose(answers.layer_shares(layers, np.zeros(2)).sum(), 1), "lengths are positive"
    assert np.allclose(answers.layer_shares(layers, np.zeros(2))[0], (7 / 3) / (7 / 3 + 3))
