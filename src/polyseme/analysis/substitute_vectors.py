"""What a language model would put in the place of a word, as a vector: it tells the senses of the word apart.

The word itself is not read, only the words before it and after it (Amrami and Goldberg 2018). The forward state before it plus
the backward state after it score every word of the vocabulary. Frequent words fit nearly everywhere, so the logarithm of a
word's rank is added; a vocabulary lists frequent words first. The vector is the mean direction of the output vectors of the
best words, weighted by their scores.
Measured in docs/en/results/models.md.
"""

from __future__ import annotations

import weakref

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.analysis.search import normalised
from polyseme.encoders.base import Encoder
from polyseme.encoders.elmo import Elmo
from polyseme.nn.output.full import FullSoftmax
from polyseme.nn.weight_version import WeightVersion, weight_version

COUNT, TEMPERATURE = 50, 2.0
VOCABULARY = 50_000  # words that can be substitutes: the most frequent ones
_AT_ONCE = 256  # words whose scores of the vocabulary are in memory together
_FIRST_RANK = 10  # so that the most frequent words of all do not differ too much


class SubstituteVectors:
    """Turns the states around a word into the vector of its substitutes."""

    def __init__(self, model: Elmo) -> None:
        output, vocabulary = model.output_and_vocabulary()
        assert isinstance(output, FullSoftmax)
        self.width, self._half = model.config.output, model.config.half
        self._rows: Tensor = output.weight.detach()[:VOCABULARY]
        self._mean = self._rows.float().mean(0)
        ranks = torch.arange(len(self._rows), device=self._rows.device) + _FIRST_RANK
        self._bias = 2 * output.bias.detach()[:VOCABULARY].float() + ranks.log()
        special = [token for token in (model.config.begin, model.config.end, model.config.unknown) if token in vocabulary]
        ids = vocabulary.ids(special)
        self._bias[torch.from_numpy(ids[ids < len(self._bias)])] = -torch.inf
        with torch.inference_mode():
            left, right = model.halves(model.read([["."]], start=None)[0][-1, 0])
        self._begin, self._end = left[0].float().cpu().numpy(), right[2].float().cpu().numpy()

    def states(self, before: NDArray[np.floating] | None, after: NDArray[np.floating] | None) -> NDArray[np.float32]:
        """The sum of the states around a word, (width,), from the top layers (dim,) of the words beside it; None: no word."""
        left = self._begin if before is None else before[: self.width]
        right = self._end if after is None else after[self._half : self._half + self.width]
        return left.astype(np.float32) + right.astype(np.float32)

    def at(self, top: NDArray[np.floating], position: int) -> NDArray[np.float32]:
        """The same for a position of a sentence, whose top layer is (words, dim)."""
        before, after = (top[place] if 0 <= place < len(top) else None for place in (position - 1, position + 1))
        return self.states(before, after)

    @torch.inference_mode()
    def __call__(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        """Sums of states (words, width) -> vectors of length 1 (words, width)."""
        return np.concatenate([self._some(part) for part in np.split(states, range(_AT_ONCE, len(states), _AT_ONCE))])

    def _some(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = torch.from_numpy(states).to(self._rows) @ self._rows.T + self._bias
        best = scores.topk(min(COUNT, scores.shape[1]), dim=1)
        weights = torch.softmax(best.values / TEMPERATURE, dim=1)
        directions = torch.nn.functional.normalize(self._rows[best.indices].float() - self._mean, dim=2)
        return normalised(torch.einsum("wc,wcd->wd", weights, directions).cpu().numpy())


_made: weakref.WeakKeyDictionary[Encoder, tuple[WeightVersion, SubstituteVectors]] = weakref.WeakKeyDictionary()


def substitute_vectors(encoder: Encoder) -> SubstituteVectors | None:
    """Return what computes them for a model; None if it is no bidirectional language model with an output vector per word."""
    if not isinstance(encoder, Elmo) or encoder.vocabulary is None or not isinstance(encoder.output, FullSoftmax):
        return None
    version, known = weight_version(encoder), _made.get(encoder)
    if known is None or known[0] != version:
        known = _made[encoder] = (version, SubstituteVectors(encoder))
    return known[1]
