"""A bidirectional LSTM layer over words without padding, on a CPU, with backpropagation through time (BPTT) written out.

With gradients, PyTorch's own layer is slow there: over packed sequences it keeps a graph of every step, and oneDNN's kernels
read padding too and compute gradients of inputs that need none, such as frozen layers. Here the matmuls with the inputs and for
the weight gradients run once for all words, and a step takes both directions. The kernels of a step are `bptt_torch`'s.

Shapes: N words of all texts, T steps, I inputs, H cells; 2 directions.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.nn.lstm.bptt_torch import PreviousCell, cell_backward, cell_forward


class PackedBiLstm(torch.autograd.Function):
    """How many texts have a word at each of T steps, the order of the backward direction (N,); inputs (N, I), weights
    (2, 4H, I) and (2, 4H, H), bias (2, 4H) -> states (N, 2H)."""

    @staticmethod
    def forward(ctx: Any, sizes: list[int], order: Tensor, *tensors: Tensor) -> Tensor:
        inputs, input_weight, recurrent_weight, bias = tensors
        words, dim = len(inputs), recurrent_weight.shape[2]
        gates = inputs.new_empty(2, words, 4 * dim)
        torch.addmm(bias[0], inputs, input_weight[0].T, out=gates[0])
        torch.index_select(torch.addmm(bias[1], inputs, input_weight[1].T), 0, order, out=gates[1])
        cells, outputs, start = gates.new_empty(2, words, dim), gates.new_empty(2, words, dim), gates.new_zeros(2, 1, dim)
        for now, earlier in _steps(sizes):
            if earlier is not None:
                for direction in range(2):
                    gates[direction, now].addmm_(outputs[direction, earlier], recurrent_weight[direction].T)
            previous = PreviousCell(start if earlier is None else cells[:, earlier], start, None)
            cell_forward(gates[:, now], previous, cells[:, now], outputs[:, now], None)
        ctx.sizes = sizes
        ctx.save_for_backward(order, inputs, input_weight, recurrent_weight, gates, cells, outputs)
        return torch.cat([outputs[0], _as_given(outputs[1], order)], dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        order, inputs, input_weight, recurrent_weight, gates, cells, outputs = ctx.saved_tensors
        sizes, dim = ctx.sizes, outputs.shape[2]
        forward, backward = grads[0].chunk(2, dim=1)
        above = torch.stack([forward, backward.index_select(0, order)])  # of the outputs; from later steps, too
        gates = gates.clone()  # overwritten by their gradient, and another backward pass may read them again
        grad_cell, start = cells.new_zeros(2, sizes[0], dim), cells.new_zeros(2, 1, dim)
        for now, earlier in reversed(_steps(sizes)):
            previous = PreviousCell(start if earlier is None else cells[:, earlier], start, None)
            rows = grad_cell[:, : now.stop - now.start]
            cell_backward(gates[:, now], previous, cells[:, now], above[:, now], rows, start, None)
            if earlier is not None:
                for direction in range(2):
                    above[direction, earlier].addmm_(gates[direction, now], recurrent_weight[direction])
        by_word = gates[0], _as_given(gates[1], order)
        before = torch.cat(
            [torch.arange(earlier.start, earlier.stop) for _, earlier in _steps(sizes)[1:] if earlier is not None]
            or [order[:0]]
        )
        later = gates[:, sizes[0] :]
        return (
            None,
            None,
            by_word[0] @ input_weight[0] + by_word[1] @ input_weight[1] if ctx.needs_input_grad[2] else None,
            torch.stack([grad.T @ inputs for grad in by_word]),
            torch.stack([grad.T @ hidden[before] for grad, hidden in zip(later, outputs, strict=True)]),
            gates.sum(1),
        )


def packed_bilstm(lstm: nn.Module, inputs: Tensor, sizes: list[int], order: Tensor) -> Tensor:
    """A layer of `torch.nn.LSTM` over packed words (N, I) -> (N, 2H); `sizes` and `order` are those of a `Packing`."""

    def both(name: str) -> Tensor:
        return torch.stack([getattr(lstm, f"{name}_l0"), getattr(lstm, f"{name}_l0_reverse")])

    bias = both("bias_ih") + both("bias_hh")
    states: Tensor = PackedBiLstm.apply(sizes, order, inputs, both("weight_ih"), both("weight_hh"), bias)
    return states


def _steps(sizes: list[int]) -> list[tuple[slice, slice | None]]:
    """Return the packed words of each step, and those before them in their texts; None: they are the first.

    >>> _steps([2, 1])
    [(slice(0, 2, None), None), (slice(2, 3, None), slice(0, 1, None))]
    """
    starts = list(accumulate(sizes, initial=0))
    earlier = [None, *(slice(start, start + rows) for start, rows in zip(starts, sizes[1:], strict=False))]
    return [(slice(start, start + rows), before) for start, rows, before in zip(starts, sizes, earlier, strict=False)]


def _as_given(words: Tensor, order: Tensor) -> Tensor:
    """Put words of the backward direction back into the order of the inputs."""
    return torch.empty_like(words).index_copy_(0, order, words)
