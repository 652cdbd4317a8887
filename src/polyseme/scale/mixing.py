"""A mix of layers with given weights, as a dataset stores it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import layer_norm

from polyseme.nn.mix import EPSILON


def mixed(stack: NDArray[np.float32], weights: Sequence[float], normalize: bool) -> NDArray[np.float32]:
    """Return the weighted sum of layers (layers, words, dim): (words, dim). In a fixed order, so that bytes are the same."""
    if normalize:
        stack = layer_norm(torch.from_numpy(np.ascontiguousarray(stack)), stack.shape[-1:], eps=EPSILON["words"]).numpy()
    result = np.zeros(stack.shape[1:], dtype=np.float32)
    for weight, layer in zip(weights, stack, strict=True):
        result += np.float32(weight) * layer
    return result
