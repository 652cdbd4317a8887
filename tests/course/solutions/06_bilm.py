"""Solutions of chapter 6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def lstm_step(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, weight: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    i, f, g, o = np.split(weight @ np.concatenate([x, h]) + bias, 4)
    i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
    c = f * c + i * np.tanh(g)
    return o * np.tanh(c), c


def bilm_targets(tokens: list[str]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    forward = [(k, tokens[k + 1]) for k in range(len(tokens) - 1)]
    return forward, [(k, tokens[k - 1]) for k in range(1, len(tokens))]


def leaks(predict: Callable[[list[int]], np.ndarray], sentence: list[int], words: int) -> bool:
    before = predict(sentence)
    for place in range(len(sentence)):
        for word in range(words):
            changed = [*sentence[:place], word, *sentence[place + 1 :]]
            if not np.allclose(predict(changed)[place], before[place], rtol=0, atol=1e-6):
                return True
    return False
