"""The full softmax output layer of a language model: a probability for every word of the vocabulary.

Both directions share it, as in Peters et al. 2018. Scores are computed for a slice of words at a time, so that (words,
vocabulary) is never in memory: the original's would take 3 MB per word. The training loss also computes the gradients in the
same pass, since they need the scores again. `FullSoftmax` has its own row for each word, `TiedSoftmax` uses the rows of the
encoder's word table (Press and Wolf 2017). For large vocabularies there are `adaptive`, another distribution, and `sampled`, a
cheaper training loss over these two.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.output.inplace_softmax import softmax_
from polyseme.nn.pauses import pause

SCORES = 1 << 24  # scores in memory at a time
SCORES_CUDA = 1 << 27  # in training on a GPU, which small products leave idle
ALIGNED = 8  # words: 16-bit products whose rows are no multiple of 16 bytes take three times as long on a GPU
WIDEST = 128  # widest states for the fused loss on a GPU: shared memory must hold them and their gradients
Losses = tuple[Tensor, Tensor]
"""The sum of all losses, with gradients, and each loss, without."""


class OutputLayer(nn.Module, ABC):
    """From states to word probabilities."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Words of the vocabulary."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Size of a state."""

    @abstractmethod
    def forward(self, states: Tensor) -> Tensor:
        """Return log-probabilities of all words: (n, dim) -> (n, vocabulary)."""

    @abstractmethod
    def log_probs(self, states: Tensor, targets: Tensor, *, numbers: int = SCORES) -> Tensor:
        """Return log-probabilities of the targets: (n, dim), (n,) -> (n,), with at most `numbers` scores in memory."""

    @abstractmethod
    def loss(self, states: Tensor, targets: Tensor) -> Losses:
        """Return the losses of the targets: their sum with gradients, in bounded memory, and each without."""


class FullSoftmax(OutputLayer):
    """weight (vocabulary, dim), bias (vocabulary)."""

    weight: Tensor

    def __init__(self, vocabulary: int, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, dim).normal_(std=dim**-0.5))
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    @property
    def size(self) -> int:
        return len(self.weight)

    @property
    def dim(self) -> int:
        return self.weight.shape[1]

    def forward(self, states: Tensor) -> Tensor:
        return F.log_softmax(F.linear(states, self.weight, self.bias), dim=-1)

    def log_probs(self, states: Tensor, targets: Tensor, *, numbers: int = SCORES) -> Tensor:
        step = max(1, numbers // self.size)
        parts = []
        for i in range(0, len(states), step):
            if i:
                pause()
            parts.append(self(states[i : i + step]).gather(1, targets[i : i + step, None]).squeeze(1))
        return torch.cat(parts) if parts else states.new_zeros(0)

    def loss(self, states: Tensor, targets: Tensor) -> Losses:
        if flash_fits(states, self.weight):
            from polyseme.nn.output.softmax_triton import FlashLoss

            each = FlashLoss.apply(states, self.weight, self.bias, targets)
            return each.sum(), each.detach()
        found: Losses = _SlicedLoss.apply(states, self.weight, self.bias, targets)
        return found


def flash_fits(states: Tensor, weight: Tensor) -> bool:
    """Whether the fused loss applies: on a GPU, in 16 bits, with states that are narrow enough."""
    if not states.is_cuda or states.dtype not in (torch.bfloat16, torch.float16) or weight.shape[1] > WIDEST:
        return False
    return importlib.util.find_spec("triton") is not None


class TiedSoftmax(FullSoftmax):
    """A softmax whose weight is a word table, with a bias of its own.

    The table stays the encoder's: this layer only refers to it, so it is counted, trained, moved and saved once.
    """

    def __init__(self, table: nn.Embedding) -> None:
        OutputLayer.__init__(self)  # without a weight
        self._table = (table,)  # in a tuple, so that PyTorch does not register it as a submodule
        self.bias = nn.Parameter(table.weight.new_zeros(table.num_embeddings))

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        """The table's parameter."""
        return self._table[0].weight


class _SlicedLoss(torch.autograd.Function):
    """Cross-entropy of a linear layer, summed; equal to `F.cross_entropy(F.linear(...), reduction="sum")`.

    Matmuls run in the type of the states, sums in that of the weight.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Losses:
        each = torch.empty(len(states), device=states.device, dtype=weight.dtype)
        grad_states = torch.empty_like(states)
        with torch.autocast(states.device.type, enabled=False):
            rows, offset = _aligned(weight, bias, states.dtype)
            grad_weight, grad_bias = torch.zeros_like(rows, dtype=weight.dtype), torch.zeros_like(offset, dtype=bias.dtype)
            step = max(1, (SCORES_CUDA if states.is_cuda else SCORES) // len(rows))
            for i in range(0, len(states), step):
                x, wanted = states[i : i + step], targets[i : i + step, None]
                scores = torch.addmm(offset, x, rows.t())
                own = scores.gather(1, wanted)[:, 0]
                each[i : i + step] = softmax_(scores) - own
                scores.scatter_add_(1, wanted, scores.new_full((1, 1), -1.0).expand_as(wanted))
                torch.mm(scores, rows, out=grad_states[i : i + step])
                grad_weight += scores.t() @ x
                grad_bias += scores.sum(0, dtype=bias.dtype)
        ctx.save_for_backward(grad_states, grad_weight[: len(weight)], grad_bias[: len(weight)])
        ctx.mark_non_differentiable(each)
        return each.sum(), each

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0]
        return (scale * grad_states).to(grad_states.dtype), scale * grad_weight, scale * grad_bias, None


def _aligned(weight: Tensor, bias: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return weight and bias in a type; in 16 bits, rows without probability fill the last eight."""
    rows, offset = weight.to(dtype), bias.to(dtype)
    more = -len(weight) % ALIGNED if dtype.itemsize == 2 else 0
    return (F.pad(rows, (0, 0, 0, more)), F.pad(offset, (0, more), value=-torch.inf)) if more else (rows, offset)
