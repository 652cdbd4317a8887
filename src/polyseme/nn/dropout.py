"""Variational dropout (Gal and Ghahramani 2016): one mask for all words of a text."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.base.errors import UsageError


class VariationalDropout(nn.Module):
    """Drop the same dimensions of all words of a text: (batch, words, dim) -> the same shape."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0.0 <= rate < 1.0:
            raise UsageError(f"dropout is {rate}; allowed: 0 or more, below 1")
        self.rate = rate

    def forward(self, vectors: Tensor) -> Tensor:
        if not self.training or self.rate == 0.0:
            return vectors
        return vectors * F.dropout(vectors.new_ones(len(vectors), 1, vectors.shape[2]), self.rate)
