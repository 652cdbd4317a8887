"""Exercises of chapter 5. Write the three functions, then check them:

python -m pytest course/exercises/check_05.py
"""

from __future__ import annotations

import numpy as np


def character_ids(word: str, length: int) -> list[int]:
    """Return a word as ids: 259, each byte of its UTF-8 form plus one, 260, and 261 up to `length`.

    A word that is too long loses its last bytes; 259 and 260 are always there.
    """
    raise NotImplementedError("character_ids")


def max_pooled(characters: np.ndarray, filter_: np.ndarray, bias: float) -> float:
    """Return relu(bias + the largest score) of one filter over all windows of a word.

    `characters`: (length, dim). `filter_`: (width, dim), with width <= length. The score of a window is the sum of the products
    of its numbers with those of the filter.
    """
    raise NotImplementedError("max_pooled")


def highway(
    x: np.ndarray, candidate: np.ndarray, gate: np.ndarray, candidate_bias: np.ndarray, gate_bias: np.ndarray
) -> np.ndarray:
    """Return t * relu(candidate @ x + candidate_bias) + (1 - t) * x, where t is the sigmoid of gate @ x + gate_bias.

    `x`: (dim,). `candidate` and `gate`: (dim, dim).
    """
    raise NotImplementedError("highway")
