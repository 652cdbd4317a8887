"""Solutions of chapter 5."""

from __future__ import annotations

import numpy as np


def character_ids(word: str, length: int) -> list[int]:
    ids = [259, *(byte + 1 for byte in word.encode("utf-8")[: length - 2]), 260]
    return ids + [261] * (length - len(ids))


def max_pooled(characters: np.ndarray, filter_: np.ndarray, bias: float) -> float:
    width = len(filter_)
    scores = [(characters[i : i + width] * filter_).sum() for i in range(len(characters) - width + 1)]
    return max(0.0, max(scores) + bias)


def highway(
    x: np.ndarray, candidate: np.ndarray, gate: np.ndarray, candidate_bias: np.ndarray, gate_bias: np.ndarray
) -> np.ndarray:
    t = 1 / (1 + np.exp(-(gate @ x + gate_bias)))
    return t * np.maximum(candidate @ x + candidate_bias, 0) + (1 - t) * x
