"""Solutions of the exercises of chapter 10."""

from __future__ import annotations

import numpy as np


def causal_weights(scores: np.ndarray) -> np.ndarray:
    future = np.triu(np.ones(scores.shape, dtype=bool), 1)
    masked = np.where(future, -np.inf, scores)
    powers = np.exp(masked - masked.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def gpt_inputs(task: str, *texts: list[str]) -> list[list[str]]:
    first, *others = texts
    if task == "classification":
        return [["<s>", *first, "<e>"]]
    pairs = [(first, other) for other in others]
    if task == "similarity":
        pairs.append((others[0], first))
    return [["<s>", *one, "$", *other, "<e>"] for one, other in pairs]


def num_parameters(vocabulary: int, positions: int, dim: int, layers: int) -> int:
    norm = 2 * dim
    attention = dim * 3 * dim + 3 * dim + dim * dim + dim
    feedforward = dim * 4 * dim + 4 * dim + 4 * dim * dim + dim
    return (vocabulary + positions) * dim + layers * (2 * norm + attention + feedforward) + norm
