"""The output layer of a language model: a probability for every word of the vocabulary.

Shared by both directions, as in Peters et al. 2018. Scores are made a slice of words at a time, so that (words, vocabulary)
never stands whole in memory: the original's would be 3 MB for each word.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FullSoftmax(nn.Module):
    """weight (vocabulary, dim), bias (vocabulary)."""

    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, dim).normal_(std=dim**-0.5))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor) -> Tensor:
        """Log-probabilities of all words: (n, dim) -> (n, vocabulary)."""
        return F.log_softmax(F.linear(states, self.weight, self.bias), dim=-1)

    def log_probs(self, states: Tensor, targets: Tensor, *, numbers: int = 1 << 24) -> Tensor:
        """Log-probabilities of the target words alone: (n, dim), (n,) -> (n,), at most `numbers` scores at a time."""
        step = max(1, numbers // len(self.weight))
        slices = range(0, len(states), step)
        parts = [self(states[i : i + step]).gather(1, targets[i : i + step, None]).squeeze(1) for i in slices]
        return torch.cat(parts) if parts else states.new_zeros(0)
