"""Checks of the exercises of chapter 5."""

from __future__ import annotations

from types import ModuleType

import numpy as np


def test_character_ids(answers: ModuleType) -> None:
    assert list(answers.character_ids("at", 6)) == [259, 98, 117, 260, 261, 261]
    assert list(answers.character_ids("é", 6)) == [259, 196, 170, 260, 261, 261], "UTF-8 has two bytes for é"
    assert list(answers.character_ids("abcdef", 5)) == [259, 98, 99, 100, 260], "a long word keeps its end-of-word id"


def test_max_pooled(answers: ModuleType) -> None:
    characters = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [0.0, 0.0]])
    filter_ = np.array([[1.0, 0.0], [0.0, 1.0]])  # the windows score 3, 1 and 3
    assert np.isclose(answers.max_pooled(characters, filter_, 0.5), 3.5)
    assert np.isclose(answers.max_pooled(characters, -filter_, 0.5), 0.0), "relu comes after the maximum and the bias"
    assert np.isclose(answers.max_pooled(characters, characters, 0.0), 15.0), "a filter as wide as the word has one window"


def test_highway(answers: ModuleType) -> None:
    x, zero, one = np.array([1.0, -2.0]), np.zeros((2, 2)), np.eye(2)
    closed = answers.highway(x, one, zero, np.zeros(2), np.full(2, -50.0))
    assert np.allclose(closed, x), "a closed gate lets the input pass"
    opened = answers.highway(x, one, zero, np.zeros(2), np.full(2, 50.0))
    assert np.allclose(opened, [1.0, 0.0]), "an open gate gives the candidate"
    half = answers.highway(x, 2 * one, zero, np.array([0.0, 5.0]), np.zeros(2))
    assert np.allclose(half, [1.5, -0.5])
