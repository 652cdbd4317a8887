"""Solutions of chapter 3."""

from __future__ import annotations

import numpy as np


def skip_gram_loss(word: np.ndarray, real: np.ndarray, fakes: np.ndarray) -> float:
    # -ln sigmoid(x) = ln(1 + e^-x)
    return float(np.logaddexp(0, -real @ word) + np.logaddexp(0, fakes @ word).sum())


def glove_weight(counts: np.ndarray, x_max: float = 100.0, alpha: float = 0.75) -> np.ndarray:
    return np.minimum(1.0, (counts / x_max) ** alpha)


def analogy(vectors: dict[str, np.ndarray], a: str, b: str, c: str, *, exclude: bool = True) -> str:
    units = {word: vector / np.linalg.norm(vector) for word, vector in vectors.items()}
    query = units[b] - units[a] + units[c]
    allowed = [word for word in units if not (exclude and word in (a, b, c))]
    return max(allowed, key=lambda word: float(units[word] @ query))
