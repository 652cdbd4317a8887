"""Exercises of chapter 7. Write the three functions, then check them:

python -m pytest course/exercises/check_07.py
"""

from __future__ import annotations

import numpy as np


def scalar_mix(layers: np.ndarray, weights: np.ndarray, gamma: float) -> np.ndarray:
    """Return gamma * sum over j of softmax(weights)[j] * layers[j].

    `layers` is (layers, words, dim), `weights` (layers,). Weights can be large: exp(1000) overflows, so subtract
    something first.
    """
    raise NotImplementedError("scalar_mix")


def batch_norm_of_layer(layer: np.ndarray, mask: np.ndarray, epsilon: float = 1e-12) -> np.ndarray:
    """Normalise a layer (batch, words, dim) by one mean and one variance over all numbers of all words.

    `mask` (batch, words) is True on words and False on padding. Padding does not count for mean and variance, and is 0
    in the result.
    """
    raise NotImplementedError("batch_norm_of_layer")


def layer_shares(layers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return how much each layer contributes to a mix without layer norm, (layers,), with sum one.

    A layer contributes its softmax weight times the mean length (Euclidean norm) of its vectors. `layers` is (layers,
    words, dim).
    """
    raise NotImplementedError("layer_shares")
