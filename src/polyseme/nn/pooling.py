"""Pool word vectors into one vector per text; padding never counts."""

from __future__ import annotations

from typing import get_args

import torch
from torch import Tensor

from polyseme.base.errors import UsageError, nearest
from polyseme.nn.config import Pooling


def pool(vectors: Tensor, mask: Tensor, how: Pooling = "mean") -> Tensor:
    """Words (batch, words, dim) under a mask (batch, words) -> texts (batch, dim); `ends` (batch, 2 dim).

    `mean`, `max`: over the words; `first`, `last`: that word; `ends`: first and last, concatenated. An empty text gives zeros.

    >>> pool(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[True, True, False]])).tolist()
    [[2.0]]
    """
    if how not in get_args(Pooling):
        raise UsageError(f"unknown pooling {how!r}{nearest(how, get_args(Pooling))}")
    if mask.shape[1] == 0:
        return vectors.new_zeros(len(vectors), vectors.shape[2] * (2 if how == "ends" else 1))
    inside = mask.unsqueeze(-1)
    counts = mask.sum(1)
    if how == "mean":
        return vectors.masked_fill(~inside, 0.0).sum(1) / counts.clamp(min=1).unsqueeze(-1)
    if how == "max":
        highest = vectors.masked_fill(~inside, -torch.inf).amax(1)
        return highest.masked_fill((counts == 0).unsqueeze(-1), 0.0)
    rows = torch.arange(len(vectors), device=vectors.device)
    first = vectors[:, 0].masked_fill((counts == 0).unsqueeze(-1), 0.0)
    last = vectors[rows, (counts - 1).clamp(min=0)].masked_fill((counts == 0).unsqueeze(-1), 0.0)
    return {"first": first, "last": last, "ends": torch.cat([first, last], dim=-1)}[how]


def concat_pool(vectors: Tensor, mask: Tensor, last: Tensor | None = None) -> Tensor:
    """Concat pooling (Howard and Ruder 2018): (batch, words, dim) -> [last; max; mean], (batch, 3 dim).

    `last` (batch, dim): replaces the vector of the last word.

    >>> concat_pool(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([[True, True, False]])).tolist()
    [[3.0, 3.0, 2.0]]
    """
    last = pool(vectors, mask, "last") if last is None else last
    return torch.cat([last, pool(vectors, mask, "max"), pool(vectors, mask, "mean")], dim=1)
