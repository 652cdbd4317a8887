"""The mix: one vector a word out of a stack of layers, gamma * sum of softmax(w)_l * layer_l, with w and gamma learned.

Peters et al. 2018, equation 1. The optional layer norm makes layers alike in size before they are mixed. It has two published
definitions that do not agree, and both are here by name: each takes one mean and one variance over all words of the batch
for each layer, `bilm` over the words alone (epsilon 1e-12), `allennlp` over the words and the begin and end marks (epsilon
1e-13). By both a word's vector depends on the batch that it comes in; `words` takes each word of each layer for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import UsageError
from polyseme.nn.config import MixNorm

_EPSILON = {"words": 1e-5, "bilm": 1e-12, "allennlp": 1e-13}


class Mix(nn.Module):
    """A learned (or fixed) weighted sum of layers.

    Needs layers (layers, batch, words, dim), a mask (batch, words) and, for the `allennlp` norm, the vectors of the begin
    and end marks (layers, batch, 2, dim). Gives (batch, words, dim), zero on padding.

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
            raise UsageError(f"a mix of {layers} layers was asked for; it needs at least 1")
        if norm is not None and norm not in get_args(MixNorm):
            raise UsageError(f"norm is {norm!r}; allowed: {', '.join(get_args(MixNorm))} or None")
        if weights is not None and len(weights) != layers:
            raise UsageError(f"{len(weights)} weights were given for {layers} layers")
        self.norm, self.l2 = norm, l2
        start = torch.zeros(layers) if weights is None else torch.tensor(weights, dtype=torch.float32)
        self.weights = nn.Parameter(start, requires_grad=learn)
        self.gamma = nn.Parameter(torch.tensor(float(gamma)), requires_grad=learn)
        self.dropout = nn.Dropout(dropout)

    def forward(self, layers: Tensor, mask: Tensor, ends: Tensor | None = None) -> Tensor:
        if len(layers) != len(self.weights):
            raise UsageError(f"the mix has {len(self.weights)} weights; {len(layers)} layers came in")
        if self.norm is not None:
            layers = self._normalise(layers, mask, ends)
        mixed = torch.tensordot(torch.softmax(self.weights, dim=0), layers, dims=1) * self.gamma
        return self.dropout(mixed.masked_fill(~mask.unsqueeze(-1), 0.0))

    def penalty(self) -> Tensor:
        """The L2 term to add to a task's loss: on the raw weights, as published."""
        return self.l2 * self.weights.square().sum()

    def _normalise(self, layers: Tensor, mask: Tensor, ends: Tensor | None) -> Tensor:
        assert self.norm is not None
        if self.norm == "words":
            return F.layer_norm(layers, layers.shape[-1:], eps=_EPSILON[self.norm])
        words = layers.masked_fill(~mask.unsqueeze(-1), 0.0)
        count = mask.sum() * layers.shape[-1]
        marks = None
        if self.norm == "allennlp":
            if ends is None:
                raise UsageError("the allennlp norm needs the begin and end marks: pass layers.ends to the mix")
            marks = ends
            count = count + marks[0].numel()
        total = words.sum((1, 2, 3)) + (marks.sum((1, 2, 3)) if marks is not None else 0.0)
        mean = (total / count).view(-1, 1, 1, 1)
        spread = (words - mean).masked_fill(~mask.unsqueeze(-1), 0.0).square().sum((1, 2, 3))
        if marks is not None:
            spread = spread + (marks - mean).square().sum((1, 2, 3))
        variance = (spread / count).view(-1, 1, 1, 1)
        return (layers - mean) / torch.sqrt(variance + _EPSILON[self.norm])


class Mixes(nn.ModuleList):
    """Several mixes of the same layers, from one pass of the encoder: one for a network's input, one for its output.

    >>> first, second = Mixes(Mix(3), Mix(3))(torch.ones(3, 1, 2, 4), torch.ones(1, 2, dtype=torch.bool))
    """

    def __init__(self, *mixes: Mix) -> None:
        super().__init__(mixes)

    def forward(self, layers: Tensor, mask: Tensor, ends: Tensor | None = None) -> list[Tensor]:
        return [mix(layers, mask, ends) for mix in self]

    def penalty(self) -> Tensor:
        """The sum of the penalties."""
        return torch.stack([mix.penalty() for mix in self]).sum()  # type: ignore[operator]
