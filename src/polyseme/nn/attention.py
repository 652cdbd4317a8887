"""Soft alignment: every word gets the mean of other words, weighted by their scores.

The dot products of BCN (McCann et al. 2017) and ESIM (Chen et al. 2017), without scale and parameters, and pooling by a learned
score. Padding never counts; a word without anything to attend to gets zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

MASKED_SCORE = -1e30
"""The score of a position that does not exist. It is finite because gradients through -inf are NaN."""


def masked_softmax(scores: Tensor, mask: Tensor, dim: int = -1) -> Tensor:
    """Return the softmax over the positions where the mask (boolean, broadcast) is true, and zero elsewhere.

    >>> masked_softmax(torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]])).tolist()
    [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]
    """
    kind = torch.promote_types(scores.dtype, torch.float32)
    lowest = torch.finfo(kind).min  # not -inf: if all positions are masked, that gives NaN
    weights = torch.softmax(scores.to(kind).masked_fill(~mask, lowest), dim)
    return weights.masked_fill(~mask, 0.0).to(scores.dtype)


def attend(query: Tensor, key: Tensor, value: Tensor, query_mask: Tensor, key_mask: Tensor) -> Tensor:
    """Return for each query the mean of the values, weighted by the softmax of its dot products with the keys.

    Queries (batch, queries, dim), keys (batch, keys, dim) and values (batch, keys, size), masks (batch, queries) and
    (batch, keys) -> (batch, queries, size), zero on padding and where there is no key.
    """
    return _weigh(query @ key.transpose(1, 2), value, query_mask, key_mask)


def align(a: Tensor, b: Tensor, mask_a: Tensor, mask_b: Tensor) -> tuple[Tensor, Tensor]:
    """Align two texts (batch, words, dim): return b for each word of a, and a for each word of b.

    Equals `attend(a, b, b, ...)` and `attend(b, a, a, ...)`, from one score matrix.
    """
    scores = a @ b.transpose(1, 2)  # (batch, words of a, words of b)
    return _weigh(scores, b, mask_a, mask_b), _weigh(scores.transpose(1, 2), a, mask_b, mask_a)


def _weigh(scores: Tensor, value: Tensor, query_mask: Tensor, key_mask: Tensor) -> Tensor:
    """Scores (batch, queries, keys) and values (batch, keys, size) -> (batch, queries, size)."""
    return masked_softmax(scores, query_mask.unsqueeze(2) & key_mask.unsqueeze(1)) @ value.to(scores.dtype)


class SelfAttentivePooling(nn.Module):
    """Words (batch, words, dim) under a mask (batch, words) -> (batch, dim), their mean weighted by a learned score.

    The score has no bias: it would cancel in the softmax.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.score = nn.Linear(dim, 1, bias=False)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        weights = masked_softmax(self.score(vectors).squeeze(2), mask, dim=1)
        return (weights.unsqueeze(2) * vectors).sum(1)
