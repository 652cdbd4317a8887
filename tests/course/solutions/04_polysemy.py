"""Solutions of chapter 4."""

from __future__ import annotations

import numpy as np


def mixture_weights(word: np.ndarray, senses: np.ndarray) -> np.ndarray:
    return np.linalg.lstsq(senses.T, word, rcond=None)[0]


def weighted_context(vectors: np.ndarray, frequencies: np.ndarray, place: int, a: float = 1e-3) -> np.ndarray:
    weights = a / (a + frequencies)
    weights[place] = 0
    return weights @ vectors / weights.sum()


def two_senses(uses: np.ndarray, steps: int = 20) -> np.ndarray:
    distances = np.linalg.norm(uses[:, None] - uses, axis=-1)
    centres = uses[sorted(np.unravel_index(distances.argmax(), distances.shape))]
    groups = np.zeros(len(uses), dtype=int)
    for _ in range(steps):
        groups = np.linalg.norm(uses[:, None] - centres, axis=-1).argmin(axis=1)
        centres = np.stack([uses[groups == group].mean(axis=0) for group in (0, 1)])
    return groups
