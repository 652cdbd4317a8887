"""Checks of the exercises of chapter 6."""

from __future__ import annotations

from types import ModuleType

import numpy as np


def test_lstm_step(answers: ModuleType) -> None:
    weight, bias = np.zeros((4, 2)), np.zeros(4)
    h, c = answers.lstm_step(np.array([1.0]), np.array([0.0]), np.array([2.0]), weight, bias)
    assert np.allclose([h[0], c[0]], [0.5 * np.tanh(1.0), 1.0]), "gates of 1/2 keep half of the memory and show half of it"
    closed = np.array([-50.0, 50.0, 3.0, 50.0])  # writes nothing, keeps all, shows all
    h, c = answers.lstm_step(np.array([1.0]), np.array([0.3]), np.array([2.0]), weight, closed)
    assert np.allclose([h[0], c[0]], [np.tanh(2.0), 2.0])
    weight[2] = [0.5, -1.0]  # the candidate reads x and h
    opened = np.array([50.0, -50.0, 0.1, 50.0])
    h, c = answers.lstm_step(np.array([1.0]), np.array([0.3]), np.array([2.0]), weight, opened)
    assert np.allclose([h[0], c[0]], [np.tanh(np.tanh(0.3)), np.tanh(0.3)])


def test_bilm_targets(answers: ModuleType) -> None:
    forward, backward = answers.bilm_targets(["<s>", "a", "b", "</s>"])
    assert list(forward) == [(0, "a"), (1, "b"), (2, "</s>")]
    assert list(backward) == [(1, "<s>"), (2, "a"), (3, "b")]


def test_leaks(answers: ModuleType) -> None:
    def neighbours(sentence: list[int]) -> np.ndarray:
        """Honest: a position depends on the words beside it."""
        padded = np.array([0, *sentence, 0])
        scores = np.eye(5)[padded[:-2]] + 2 * np.eye(5)[padded[2:]]
        return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)

    def peeks_at_the_last(sentence: list[int]) -> np.ndarray:
        """Cheats at the last position, and only where word 4 stands there."""
        probs = neighbours(sentence)
        if sentence[-1] == 4:
            probs[-1] = np.eye(5)[4]
        return probs

    assert not answers.leaks(neighbours, [1, 2, 3], 5)
    assert answers.leaks(peeks_at_the_last, [1, 2, 3], 5)
    assert answers.leaks(lambda sentence: np.eye(5)[sentence], [1, 2, 3], 5)
