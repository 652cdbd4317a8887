"""The output layer of a language model: a probability for every word of the vocabulary.

Shared by both directions, as in Peters et al. 2018. Scores are made a slice of words at a time, so that (words, vocabulary)
never stands whole in memory: the original's would be 3 MB for each word. The training loss goes further and makes the
gradients in the same pass, slice by slice, as they need the scores again.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SCORES = 1 << 24  # scores that stand in memory at a time


class FullSoftmax(nn.Module):
    """weight (vocabulary, dim), bias (vocabulary)."""

    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, dim).normal_(std=dim**-0.5))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor) -> Tensor:
        """Log-probabilities of all words: (n, dim) -> (n, vocabulary)."""
        return F.log_softmax(F.linear(states, self.weight, self.bias), dim=-1)

    def log_probs(self, states: Tensor, targets: Tensor, *, numbers: int = SCORES) -> Tensor:
        """Log-probabilities of the target words alone: (n, dim), (n,) -> (n,), at most `numbers` scores at a time."""
        step = max(1, numbers // len(self.weight))
        slices = range(0, len(states), step)
        parts = [self(states[i : i + step]).gather(1, targets[i : i + step, None]).squeeze(1) for i in slices]
        return torch.cat(parts) if parts else states.new_zeros(0)

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The sum of the losses of the target words, with gradients, in bounded memory."""
        return _SlicedLoss.apply(states, self.weight, self.bias, targets)


class _SlicedLoss(torch.autograd.Function):
    """Cross-entropy of a linear layer, summed; equal to `F.cross_entropy(F.linear(...), reduction="sum")`."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        total = states.new_zeros((), dtype=torch.float32)
        grad_states, grad_weight, grad_bias = torch.empty_like(states), torch.zeros_like(weight), torch.zeros_like(bias)
        step = max(1, SCORES // len(weight))
        for i in range(0, len(states), step):
            x, wanted = states[i : i + step], targets[i : i + step, None]
            scores = F.linear(x, weight, bias).float()
            top = torch.logsumexp(scores, dim=1, keepdim=True)
            total += (top - scores.gather(1, wanted)).sum()
            grad = torch.exp(scores.sub_(top))
            grad.scatter_add_(1, wanted, grad.new_full((1, 1), -1.0).expand_as(wanted))
            grad = grad.to(weight.dtype)
            grad_states[i : i + step] = grad @ weight
            grad_weight.addmm_(grad.t(), x.to(weight.dtype))
            grad_bias += grad.sum(0)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight, grad_bias = ctx.saved_tensors
        return grads[0] * grad_states, grads[0] * grad_weight, grads[0] * grad_bias, None


class SampledSoftmax:
    """A cheaper training loss for large vocabularies: the target against `negatives` words drawn by frequency rank.

    Jean et al. 2015, as in bilm-tf: rank r (from 0, words in descending frequency) is drawn with probability
    log((r + 2) / (r + 1)) / log(vocabulary + 1); distinct words, shared by all targets of a step; scores are corrected by the
    log of their expected count, and a draw that hits the target itself does not count. A sampled loss is no perplexity.
    """

    def __init__(self, output: FullSoftmax, negatives: int) -> None:
        self.output = output
        self.negatives = min(negatives, len(output.weight))

    def loss(self, states: Tensor, targets: Tensor) -> Tensor:
        """The sum of the sampled losses of the target words."""
        drawn, tries = self.draw()
        drawn = drawn.to(states.device)
        own = (states * self.output.weight[targets]).sum(1) + self.output.bias[targets]
        others = F.linear(states, self.output.weight[drawn], self.output.bias[drawn])
        others = others - self.log_expected(drawn, tries)
        others = others.masked_fill(drawn == targets[:, None], -torch.inf)
        scores = torch.cat([(own - self.log_expected(targets, tries))[:, None], others], dim=1)
        return (torch.logsumexp(scores.float(), dim=1) - scores[:, 0].float()).sum()

    def draw(self) -> tuple[Tensor, int]:
        """Distinct words by frequency rank, and how many draws it took; from PyTorch's own random numbers."""
        size = len(self.output.weight)
        seen = torch.empty(0, dtype=torch.long)
        while True:
            fresh = torch.exp(torch.rand(2 * self.negatives, dtype=torch.float64) * math.log(size + 1)) - 1
            seen = torch.cat([seen, fresh.long().clamp(0, size - 1)])
            values, inverse = torch.unique(seen, return_inverse=True)
            if len(values) >= self.negatives:
                break
        first = torch.full((len(values),), len(seen)).scatter_reduce(0, inverse, torch.arange(len(seen)), "amin")
        order = torch.argsort(first)[: self.negatives]
        return values[order], int(first[order[-1]]) + 1

    def log_expected(self, ids: Tensor, tries: int) -> Tensor:
        """Log of the expected count of a word among the distinct words of so many draws."""
        rank = ids.double()
        chance = torch.log((rank + 2) / (rank + 1)) / math.log(len(self.output.weight) + 1)
        return torch.log(-torch.expm1(tries * torch.log1p(-chance))).to(self.output.weight.dtype)
