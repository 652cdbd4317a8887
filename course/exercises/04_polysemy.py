"""Exercises of chapter 4. Write the three functions, then check them:

python -m pytest course/exercises/check_04.py
"""

from __future__ import annotations

import numpy as np


def mixture_weights(word: np.ndarray, senses: np.ndarray) -> np.ndarray:
    """Return the weights (senses,) with which the sense vectors best add up to the vector of a word (least squares).

    `word`: (dim,). `senses`: (senses, dim).
    """
    raise NotImplementedError("mixture_weights")


def weighted_context(vectors: np.ndarray, frequencies: np.ndarray, place: int, a: float = 1e-3) -> np.ndarray:
    """Return the weighted mean of all words of a sentence but the one at `place`, (dim,).

    `vectors`: (words, dim). `frequencies`: the relative frequency p of each word, (words,). A word has the weight a / (a + p),
    and the sum of weighted vectors is divided by the sum of the weights.
    """
    raise NotImplementedError("weighted_context")


def two_senses(uses: np.ndarray, steps: int = 20) -> np.ndarray:
    """Split the uses of a word, (uses, dim), into two groups by 2-means, and return the group of each, 0 or 1.

    Start with the two uses that are farthest apart as centres; the use that comes first in the array has group 0. In each step
    every use joins the nearer centre, and each centre becomes the mean of its group.
    """
    raise NotImplementedError("two_senses")
