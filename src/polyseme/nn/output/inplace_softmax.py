"""The inner step of every softmax loss: scores become probabilities in place."""

from __future__ import annotations

import importlib.util

import torch
from torch import Tensor


def softmax_(scores: Tensor, own: Tensor | None = None) -> Tensor:
    """Turn scores (n, words) into exp(score - top) in place and return top, their logsumexp (n,).

    `own` (n,): one more score per row for the sum. On a GPU each row is read twice and written once.
    """
    if scores.is_cuda and importlib.util.find_spec("triton") is not None:
        from polyseme.nn.output.inplace_softmax_triton import softmax_ as fused

        return fused(scores, own)
    return plain_softmax_(scores, own)


def plain_softmax_(scores: Tensor, own: Tensor | None = None) -> Tensor:
    """The same in plain PyTorch."""
    kind = torch.promote_types(scores.dtype, torch.float32)
    top = torch.logsumexp(scores.to(kind), dim=1)
    if own is not None:
        top = torch.logaddexp(top, own.to(kind))
    scores.sub_(top[:, None]).exp_()
    return top
