"""Solutions of chapter 2."""

from __future__ import annotations

import numpy as np


def windows(sentence: list[int], order: int, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    row = [begin] * (order - 1) + list(sentence) + [end]
    rows = np.array([row[i : i + order] for i in range(len(sentence) + 1)])
    return rows[:, :-1], rows[:, -1]


def log_softmax(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def nnlm(
    contexts: np.ndarray, table: np.ndarray, hidden: np.ndarray, hidden_bias: np.ndarray, output: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    vectors = table[contexts].reshape(len(contexts), -1)
    return log_softmax(np.tanh(vectors @ hidden.T + hidden_bias) @ output.T + bias)
