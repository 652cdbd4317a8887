"""The scalar mix of layers: gamma * sum of softmax(w)_l * layer_l for each word, with trainable w and gamma.

Peters et al. 2018, equation 1. An optional layer norm brings the layers to one scale first. It has two published definitions
that differ, and both are here by name. Each uses one mean and one variance per layer over the whole batch: `bilm` over the
words (epsilon 1e-12), `allennlp` over the words and the begin and end tokens (epsilon 1e-13). With both, a word's vector
depends on its batch; `words` normalises each word by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import UsageError
from polyseme.nn.config import MixNorm
from polyseme.nn.dropout import Dropout

EPSILON = {"words": 1e-5, "bilm": 1e-12, "allennlp": 1e-13}


class Mix(nn.Module):
    """A trainable (or fixed) weighted sum of layers.

    Takes layers (layers, batch, words, dim), a mask (batch, words) and, for the `allennlp` norm, the vectors of the begin and
    end tokens (layers, batch, 2, dim). Returns (batch, words, dim), zero on padding.

    >>> mix = Mix(3)
    >>> mix(torch.ones(3, 1, 2, 4), torch.ones(1, 2, dtype=torch.bool)).shape
    torch.Size([1, 2, 4])
    """

    def __init__(
        self,
        layers: int,
        *,
        norm: MixNorm | None = None,
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        learn: bool = True,
        l2: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise UsageError(f"a mix has {layers} layers; allowed: 1 or more")
        if norm is not None and norm not in get_args(MixNorm):
            raise UsageError(f"norm is {norm!r}; allowed: {', '.join(get_args(MixNorm))} or None")
        if weights is not None and len(weights) != layers:
            raise UsageError(f"got {len(weights)} weights for {layers} layers; give one per layer")
        self.norm, self.l2 = norm, l2
        start = torch.zeros(layers) if weights is None else torch.tensor(weights, dtype=torch.float32)
        self.weights = nn.Parameter(start, requires_grad=learn)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=learn)
        self.dropout = Dropout(dropout)

    def forward(self, layers: Tensor, mask: Tensor, ends: Tensor | None = None) -> Tensor:
        if len(layers) != len(self.weights):
            raise UsageError(f"got {len(layers)} layers for a mix of {len(self.weights)}")
        if self.norm is not None:
            layers = self._normalise(layers, mask, ends)
        mixed = torch.tensordot(torch.softmax(self.weights, dim=0) * self.gamma, layers, dims=1)
        dropped: Tensor = self.dropout(mixed, mask)
        return dropped

    def penalty(self) -> Tensor:
        """Return the L2 term for a task's loss; on the raw weights, as published."""
        return self.l2 * self.weights.square().sum()

    def _normalise(self, layers: Tensor, mask: Tensor, ends: Tensor | None) -> Tensor:
        assert self.norm is not None
        if self.norm == "words":
            return F.layer_norm(layers, layers.shape[-1:], eps=EPSILON[self.norm])
        words = layers.masked_fill(~mask.unsqueeze(-1), 0.0)
        count = mask.sum() * layers.shape[-1]
        total = words.sum((1, 2, 3))
        if self.norm == "bilm":
            ends = None
        elif ends is None:
            raise UsageError("the allennlp norm needs the begin and end tokens: pass layers.ends to the mix")
        else:
            count, total = count + ends[0].numel(), total + ends.sum((1, 2, 3))
        mean = (total / count).view(-1, 1, 1, 1)
        squares = (words - mean).masked_fill(~mask.unsqueeze(-1), 0.0).square().sum((1, 2, 3))
        if ends is not None:
            squares = squares + (ends - mean).square().sum((1, 2, 3))
        variance = (squares / count).view(-1, 1, 1, 1)
        return (layers - mean) / torch.sqrt(variance + EPSILON[self.norm])
