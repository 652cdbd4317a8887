"""Perplexity: exp of the mean negative log-likelihood per prediction.

A sentence of n words has n + 1 predictions in each direction: its words, and the end (or begin) of the sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

MAX_LOSS = 700.0
"""The mean loss is capped here, because exp of more overflows a float."""


def perplexity(log_likelihood: float, predictions: int) -> float:
    """Return the perplexity of a summed natural-log likelihood.

    >>> round(perplexity(3 * math.log(0.25), 3), 6)
    4.0
    """
    return math.exp(min(-log_likelihood / predictions, MAX_LOSS))


@dataclass(frozen=True)
class Perplexity:
    """The perplexity of a model over some sentences."""

    forward: float
    """From left to right."""
    backward: float | None
    """From right to left; None: the model reads only from left to right."""
    mean: float
    """exp of the mean loss over the directions (not the mean of the two perplexities)."""
    predictions: int
    """Words and sentence boundaries predicted in each direction."""


class PerplexityMeter:
    """Sums log-probabilities over sentences.

    >>> meter = PerplexityMeter()
    >>> meter.add([math.log(0.5)] * 2, [math.log(0.125)] * 2)
    >>> result = meter.result()
    >>> round(result.forward, 6), round(result.backward, 6), round(result.mean, 6), result.predictions
    (2.0, 8.0, 4.0, 2)
    """

    def __init__(self) -> None:
        self.sentences = 0
        self.predictions = 0
        """In each direction."""
        self.forward = 0.0
        self.backward: float | None = 0.0
        """Summed log-likelihoods; backward is None where the model reads only from left to right."""

    def add(self, forward: ArrayLike, backward: ArrayLike | None = None) -> None:
        """Add a sentence: the natural-log probability of each prediction, (predictions,), from the left and the right."""
        values = np.asarray(forward)
        self.sentences += 1
        self.predictions += values.size
        self.forward += float(values.sum())
        if backward is None or self.backward is None:
            self.backward = None
        else:
            self.backward += float(np.asarray(backward).sum())

    def result(self) -> Perplexity | None:
        """Return the perplexity over all sentences; None: there were none."""
        if not self.predictions:
            return None
        mean = self.forward if self.backward is None else (self.forward + self.backward) / 2
        back = None if self.backward is None else perplexity(self.backward, self.predictions)
        count = self.predictions
        return Perplexity(perplexity(self.forward, count), back, perplexity(mean, count), count)
