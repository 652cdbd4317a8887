"""Exercises of chapter 3. Write the three functions, then check them:

python -m pytest course/exercises/check_03.py
"""

from __future__ import annotations

import numpy as np


def skip_gram_loss(word: np.ndarray, real: np.ndarray, fakes: np.ndarray) -> float:
    """Return the loss of a pair with negative sampling.

    `word`: the vector of the word, (dim,). `real`: that of its neighbour, (dim,). `fakes`: those of the negative samples,
    (samples, dim). Large products must not overflow.
    """
    raise NotImplementedError("skip_gram_loss")


def glove_weight(counts: np.ndarray, x_max: float = 100.0, alpha: float = 0.75) -> np.ndarray:
    """Return the weight f(X) of each count of a table: it rises with the count up to x_max, and is 1 from there on."""
    raise NotImplementedError("glove_weight")


def analogy(vectors: dict[str, np.ndarray], a: str, b: str, c: str, *, exclude: bool = True) -> str:
    """Return the word whose vector has the largest cosine with b - a + c, where all three have length one.

    `exclude`: a, b and c are no answers.
    """
    raise NotImplementedError("analogy")
