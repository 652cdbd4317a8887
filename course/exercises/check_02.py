"""Checks of the exercises of chapter 2."""

from __future__ import annotations

from types import ModuleType

import numpy as np


def test_windows(answers: ModuleType) -> None:
    contexts, targets = answers.windows([7, 8, 9], 3, 0, 1)
    assert np.array_equal(contexts, [[0, 0], [0, 7], [7, 8], [8, 9]]), "the nearest word is last"
    assert np.array_equal(targets, [7, 8, 9, 1])
    contexts, targets = answers.windows([], 4, 0, 1)
    assert np.array_equal(contexts, [[0, 0, 0]]) and np.array_equal(targets, [1]), "a sentence without words"


def test_log_softmax(answers: ModuleType) -> None:
    found = answers.log_softmax(np.array([[0.0, 0.0], [np.log(3.0), 0.0]]))
    assert np.allclose(np.exp(found), [[0.5, 0.5], [0.75, 0.25]])
    found = answers.log_softmax(np.array([[1000.0, 0.0], [-1000.0, -1000.0]]))
    assert np.allclose(found, [[0.0, -1000.0], [np.log(0.5)] * 2]), "subtract the largest score first"


def test_nnlm(answers: ModuleType) -> None:
    table = np.array([[0.0], [1.0], [2.0]])
    hidden, output = np.array([[1.0, -1.0], [0.5, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    found = answers.nnlm(np.array([[1, 2], [2, 2]]), table, hidden, np.array([0.1, 0.0]), output, np.array([0.0, 0.0, 0.3]))
    # by hand: x = (1, 2) and (2, 2); Hx + d = (-0.9, 0.5) and (0.1, 1)
    scores = np.array([[np.tanh(-0.9), np.tanh(0.5), 0.3], [np.tanh(0.1), np.tanh(1.0), 0.3]])
    expected = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    assert found.shape == (2, 3) and np.allclose(found, expected)
