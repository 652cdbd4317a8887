"""The words around a word: with them, the senses of a word are told apart better than by its own vector alone.

A vector in context has much of the word itself in it, which is the same in all its senses. The mean of the vectors of the words
around it has more of the sense. Both count the same here: the cosine of two words in context is the mean of the cosine of their
own vectors and that of their surroundings. Measured in docs/en/results/models.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.config import WINDOW
from polyseme.analysis.search import normalised


def surroundings(vectors: NDArray[np.floating], spans: Sequence[range], window: int = WINDOW) -> NDArray[np.float32]:
    """Return the mean direction of the words around each span: unit vectors (words, dim) -> (spans, dim).

    Zeros where there is no word around a span.

    >>> surroundings(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), [range(0, 1)], window=1).tolist()
    [[0.0, 1.0]]
    """
    found = np.zeros((len(spans), vectors.shape[1]), dtype=np.float32)
    for number, span in enumerate(spans):
        before = vectors[max(span.start - window, 0) : span.start]
        around = np.concatenate([before, vectors[span.stop : span.stop + window]])
        if len(around):
            found[number] = around.mean(0, dtype=np.float32)
    return normalised(found)


def with_surroundings(own: NDArray[np.floating], around: NDArray[np.floating]) -> NDArray[np.float32]:
    """Concatenate vectors with those of their surroundings, each of length 1: (..., dim) twice -> (..., 2 * dim)."""
    return np.concatenate([normalised(own), normalised(around)], axis=-1)
