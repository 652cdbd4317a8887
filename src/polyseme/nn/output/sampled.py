"""Sampled softmax: a cheaper training loss for large vocabularies, of the target against words drawn by frequency rank.

Jean et al. 2015, as in bilm-tf: rank r (from 0, words by descending frequency) is drawn with probability log((r + 2) / (r +
1)) / log(vocabulary + 1). The drawn words are distinct and shared by all targets of a step. Scores are corrected by the log of
their expected count, and a draw that equals the target does not count. A sampled loss is not a perplexity.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.nn.output.full import SCORES, FullSoftmax, Losses, OutputLayer
from polyseme.nn.output.inplace_softmax import softmax_
from polyseme.nn.to_device import to_device

SCORES_CPU = 1 << 20  # scores in memory at a time on a CPU, to fit its caches


class SampledSoftmax:
    """The loss of the target against `negatives` words, over the weights of a `FullSoftmax` or a `TiedSoftmax`."""

    def __init__(self, output: OutputLayer, negatives: int) -> None:
        if not isinstance(output, FullSoftmax):
            given = type(output).__name__
            raise ConfigError(f"a sampled loss needs a FullSoftmax or TiedSoftmax; got {given}: use its own loss")
        if negatives < 1:
            raise ConfigError(f"negatives is {negatives}; allowed: 1 or more")
        self.output = output
        self.negatives = min(negatives, output.size)

    def loss(self, states: Tensor, targets: Tensor) -> Losses:
        """Return the sampled losses of the targets: their sum with gradients, and each without."""
        if self.negatives == self.output.size:
            return self.output.loss(states, targets)
        drawn, tries = self.draw()
        drawn = to_device(drawn, states.device)
        number = torch.full((self.output.size,), -1, device=states.device)  # a word's position in the sample
        number[drawn] = torch.arange(len(drawn), device=states.device)
        ids = torch.cat([drawn, targets])
        rows, bias = self.output.weight.index_select(0, ids), self.output.bias.index_select(0, ids)
        bias = bias - self.log_expected(ids, tries)
        own = (states * rows[len(drawn) :]).sum(1, dtype=bias.dtype) + bias[len(drawn) :]
        rest = rows[: len(drawn)].to(states.dtype), bias[: len(drawn)]
        found: Losses = _SampledLoss.apply(states, *rest, own, number[targets])
        return found

    def draw(self) -> tuple[Tensor, int]:
        """Draw distinct words by frequency rank with PyTorch's generator; return them and the number of draws."""
        size, count = self.output.size, 2 * self.negatives
        places, first = np.arange(count), np.empty(size, dtype=np.int64)
        taken = np.zeros(size, dtype=bool)
        found, tries = np.empty(0, dtype=np.int64), 0
        while True:
            fresh = torch.exp(torch.rand(count, dtype=torch.float64) * math.log(size + 1)) - 1
            words = fresh.long().clamp(0, size - 1).numpy()
            first[words[::-1]] = places[::-1]  # a word that is drawn again keeps its first place, which is written last
            new = np.flatnonzero((first[words] == places) & ~taken[words])[: self.negatives - len(found)]
            found = np.concatenate([found, words[new]])
            if len(found) == self.negatives:
                return torch.from_numpy(found), tries + int(new[-1]) + 1
            taken[words] = True
            tries += count

    def log_expected(self, ids: Tensor, tries: int) -> Tensor:
        """Return the log of a word's expected count among the distinct words of so many draws."""
        rank = ids.double()
        chance = torch.log((rank + 2) / (rank + 1)) / math.log(self.output.size + 1)
        return torch.log(-torch.expm1(tries * torch.log1p(-chance))).to(self.output.weight.dtype)


class _SampledLoss(torch.autograd.Function):
    """States (n, dim), the sample's rows (k, dim) and corrected bias (k,), the targets' corrected scores (n,) and positions in
    the sample (n,), -1 for none -> summed and single losses. Works on a slice of states at a time, with scores in place."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, rows: Tensor, bias: Tensor, own: Tensor, positions: Tensor) -> Losses:
        each = torch.empty_like(own)
        grad_states, grad_rows, grad_bias = torch.empty_like(states), torch.zeros_like(rows), torch.zeros_like(bias)
        grad_own = torch.empty_like(own)
        with torch.autocast(states.device.type, enabled=False):
            offset = bias.to(states.dtype)
            step = max(1, (SCORES if states.is_cuda else SCORES_CPU) // len(rows))
            for i in range(0, len(states), step):
                x, mine, hit = states[i : i + step], own[i : i + step], positions[i : i + step, None]
                scores = torch.addmm(offset, x, rows.t())
                # a draw that equals the target does not count; without one, the first score stays as it is
                kept = scores.gather(1, hit.clamp(min=0))
                scores.scatter_(1, hit.clamp(min=0), kept.masked_fill(hit >= 0, -torch.inf))
                top = softmax_(scores, mine).to(own.dtype)
                each[i : i + step] = top - mine
                grad_own[i : i + step] = torch.exp(mine - top) - 1
                torch.mm(scores, rows, out=grad_states[i : i + step])
                grad_rows.addmm_(scores.t(), x)
                grad_bias += scores.sum(0, dtype=bias.dtype)
        ctx.save_for_backward(grad_states, grad_rows, grad_bias, grad_own)
        ctx.mark_non_differentiable(each)
        return each.sum(), each

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_rows, grad_bias, grad_own = ctx.saved_tensors
        scale = grads[0]
        states, rows = (scale * grad_states).to(grad_states.dtype), (scale * grad_rows).to(grad_rows.dtype)
        return states, rows, scale * grad_bias, scale * grad_own, None
