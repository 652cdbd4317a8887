"""Perplexity: exp of the mean negative log-likelihood per prediction.

A sentence of n words has n + 1 predictions in each direction: its words, and the end (or begin) of the sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polyseme.base.display import columns, count, html_table

MANY_UNKNOWN = 0.05
"""Share of unknown words above which a perplexity says that it compares only with few others."""
MAX_LOSS = 700.0
"""The mean loss is capped here, because exp of more overflows a float."""
_COMPARE = (
    "compare it only where about as many words are outside, with other texts and other models: such a word counts as the "
    "unknown word, which is easy to predict"
)


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
    sentences: int = 0
    unknown: float = 0.0
    """Fraction of the words that are outside the vocabulary."""

    @property
    def words(self) -> int:
        """Words predicted in each direction."""
        return self.predictions - self.sentences

    def directions(self) -> dict[str, float]:
        """Perplexities by name, `mean` last; of a left-to-right model `mean` alone."""
        values = {"mean": self.mean}
        return values if self.backward is None else {"forward": self.forward, "backward": self.backward, **values}

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {"forward": self.forward, "backward": self.backward, "mean": self.mean}
        return {"sentences": self.sentences, "words": self.words, "unknown": self.unknown, "perplexity": values}

    def __str__(self) -> str:
        head = f"{count(self.sentences, 'sentence')}, {self.words:,} words, {self.unknown:.2%} outside the vocabulary"
        values = self.directions()
        names = [f"perplexity {name}" for name in values] if len(values) > 1 else ["perplexity"]
        table = columns(list(zip(names, map(format_perplexity, values.values()), strict=True)))
        return "\n".join(filter(None, [head, table, self.caution]))

    @property
    def caution(self) -> str:
        """With what it compares, where many words are outside the vocabulary; else empty."""
        return _COMPARE if self.unknown > MANY_UNKNOWN else ""

    def _repr_html_(self) -> str:
        rows = [(name, format_perplexity(value)) for name, value in self.directions().items()]
        return html_table(["direction", "perplexity"], rows, caption=f"{self.sentences:,} sentences, {self.words:,} words")


def format_perplexity(value: float) -> str:
    """Two digits after the point; huge values as a power of ten.

    >>> format_perplexity(1234.5), format_perplexity(3e66)
    ('1,234.50', '3.000e+66')
    """
    return f"{value:,.2f}" if value < 1e9 else f"{value:.3e}"


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
        self.unknown = 0
        """Words outside the vocabulary."""
        self.forward = 0.0
        self.backward: float | None = 0.0
        """Summed log-likelihoods; backward is None where the model reads only from left to right."""

    def add(self, forward: ArrayLike, backward: ArrayLike | None = None, *, unknown: int = 0) -> None:
        """Add a sentence: the natural-log probability of each prediction, (predictions,), from the left and the right.

        `unknown`: how many of its words are outside the vocabulary.
        """
        values = np.asarray(forward)
        self.sentences += 1
        self.unknown += unknown
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
        total = self.predictions
        unknown = self.unknown / max(total - self.sentences, 1)
        return Perplexity(perplexity(self.forward, total), back, perplexity(mean, total), total, self.sentences, unknown)
