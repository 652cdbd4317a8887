"""Exercises of chapter 2. Write the three functions, then check them:

python -m pytest course/exercises/check_02.py
"""

from __future__ import annotations

import numpy as np


def windows(sentence: list[int], order: int, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts (words + 1, order - 1) and the targets (words + 1,) of a sentence of word ids.

    Before the first word the context is filled with `begin`. The last target is `end`.
    """
    raise NotImplementedError("windows")


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Return the log-probabilities of scores (rows, words); each row is a distribution of its own.

    Scores of 1,000 or -1,000 must not overflow.
    """
    raise NotImplementedError("log_softmax")


def nnlm(
    contexts: np.ndarray, table: np.ndarray, hidden: np.ndarray, hidden_bias: np.ndarray, output: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """Return the log-probabilities of the next word, (rows, words).

    `contexts`: ids (rows, order - 1). `table`: C, (words, dim). `hidden`: H, (units, (order - 1) * dim). `hidden_bias`: d,
    (units,). `output`: U, (words, units). `bias`: b, (words,).
    """
    raise NotImplementedError("nnlm")
