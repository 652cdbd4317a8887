"""Exercises of chapter 6. Write the three functions, then check them:

python -m pytest course/exercises/check_06.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def lstm_step(
    x: np.ndarray, h: np.ndarray, c: np.ndarray, weight: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the state h and the memory c after one step of an LSTM.

    `x`: (inputs,). `h` and `c`: (size,). `weight`: (4 * size, inputs + size), for [x; h]; its rows are those of the input gate,
    the forget gate, the candidate and the output gate, in this order. `bias`: (4 * size,).
    """
    raise NotImplementedError("lstm_step")


def bilm_targets(tokens: list[str]) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return which state predicts which token, for the forward and for the backward direction.

    `tokens` begins with <s> and ends with </s>. State k of the forward direction has read tokens 0 to k. State k of the
    backward direction has read from the last token down to token k. Each pair is (number of the state, token that it
    predicts), in rising order of the state. The forward direction predicts every token but <s>, the backward direction every
    token but </s>.
    """
    raise NotImplementedError("bilm_targets")


def leaks(predict: Callable[[list[int]], np.ndarray], sentence: list[int], words: int) -> bool:
    """Return whether a model sees the word that it predicts.

    `predict` takes the ids of a sentence and returns a row of probabilities for each position, (len(sentence), words). The
    prediction at a position may depend on all other words. It must stay the same (within 1e-6) when the word at this position
    is replaced by any of the `words` ids.
    """
    raise NotImplementedError("leaks")
