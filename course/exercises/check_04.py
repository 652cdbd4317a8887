"""Checks of the exercises of chapter 4."""

from __future__ import annotations

from types import ModuleType

import numpy as np


def test_mixture_weights(answers: ModuleType) -> None:
    senses = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]])
    assert np.allclose(answers.mixture_weights(0.7 * senses[0] + 0.2 * senses[1], senses), [0.7, 0.2])
    outside = np.array([-2.0, 1.0, 1.0])  # at a right angle to both: it cannot be explained and changes nothing
    assert np.allclose(answers.mixture_weights(senses[0] + outside, senses), [1.0, 0.0])


def test_weighted_context(answers: ModuleType) -> None:
    vectors = np.array([[4.0, 0.0], [100.0, 100.0], [0.0, 4.0]])
    found = answers.weighted_context(vectors, np.array([0.0, 0.5, 0.002]), 1, a=0.001)
    assert np.allclose(found, [3.0, 1.0]), "the weights are 1 and 1/3; the word itself has none"
    assert np.allclose(answers.weighted_context(vectors, np.full(3, 0.1), 0), [50.0, 52.0]), "equal frequencies: the mean"


def test_two_senses(answers: ModuleType) -> None:
    rng = np.random.default_rng(0)
    truth = np.array([0, 1, 0, 0, 1, 1, 0, 1, 0, 1])
    uses = rng.normal(size=(10, 5)) + 8 * truth[:, None]
    found = answers.two_senses(uses)
    assert np.array_equal(found, truth) or np.array_equal(found, 1 - truth)
    line = np.array([[0.0], [4.9], [5.1], [5.1], [5.1], [10.0]])
    # 4.9 is nearer to 0 at first; then the means are 2.45 and 6.3, and it changes sides
    assert np.array_equal(answers.two_senses(line), [0, 1, 1, 1, 1, 1])
