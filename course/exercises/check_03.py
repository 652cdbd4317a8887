"""Checks of the exercises of chapter 3."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np


def test_skip_gram_loss(answers: ModuleType) -> None:
    word, real, fakes = np.array([1.0, 0.0]), np.array([math.log(3), 5.0]), np.array([[0.0, 7.0], [-math.log(3), 0.0]])
    # by hand: sigmoid(ln 3) = 3/4; the fakes give sigmoid(-0) = 1/2 and sigmoid(ln 3) = 3/4
    assert math.isclose(answers.skip_gram_loss(word, real, fakes), -2 * math.log(3 / 4) - math.log(1 / 2))
    assert math.isclose(answers.skip_gram_loss(word, np.array([-2000.0, 0.0]), fakes[:0]), 2000.0), "it must not overflow"


def test_glove_weight(answers: ModuleType) -> None:
    found = answers.glove_weight(np.array([[0.0, 16.0], [100.0, 5000.0]]), x_max=256.0)
    assert np.allclose(found, [[0.0, 0.125], [(100 / 256) ** 0.75, 1.0]])
    assert math.isclose(float(answers.glove_weight(np.array([25.0]), x_max=100.0, alpha=0.5)[0]), 0.5)


def test_analogy(answers: ModuleType) -> None:
    vectors = {
        "man": np.array([1.0, 0.0, 0.0]),
        "woman": np.array([0.9, 0.4, 0.0]),
        "king": np.array([3.0, 0.0, 9.0]),
        "queen": np.array([2.7, 1.6, 9.0]),
        "bread": np.array([-1.0, -1.0, 0.5]),
    }
    assert answers.analogy(vectors, "man", "woman", "king") == "queen"
    vectors["woman"] = np.array([0.99, 0.05, 0.0])
    assert answers.analogy(vectors, "man", "woman", "king") == "queen"
    assert answers.analogy(vectors, "man", "woman", "king", exclude=False) == "king", "a short step stays near c"
