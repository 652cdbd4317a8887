"""A bidirectional LSTM layer over words without padding, on a CPU, with backpropagation through time (BPTT) written out.

With gradients, PyTorch's own layer is slow there: over packed sequences it keeps a graph of every step, and oneDNN's kernels
read padding too and compute gradients of inputs that need none, such as frozen layers. Here everything that does not depend on
the step before runs once for all words, and a step takes both directions. Four long texts or fewer
gain nothing from it.

Shapes: N words of all texts, T steps, I inputs, H cells; 2 directions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


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
        cells, outputs = gates.new_empty(2, words, dim), gates.new_empty(2, words, dim)
        hidden = cell = gates.new_zeros(2, sizes[0], dim)
        for rows, now, new_cell, out in zip(
            sizes, *(each.split(sizes, dim=1) for each in (gates, cells, outputs)), strict=True
        ):
            now.baddbmm_(hidden[:, :rows], recurrent_weight.mT)
            both, g, o = now.split((2 * dim, dim, dim), dim=2)
            i, f = both.sigmoid_().chunk(2, dim=2)
            torch.mul(f, cell[:, :rows], out=new_cell).addcmul_(i, g.tanh_())
            torch.tanh(new_cell, out=out).mul_(o.sigmoid_())
            hidden, cell = out, new_cell
        ctx.sizes = sizes
        ctx.save_for_backward(order, inputs, input_weight, recurrent_weight, gates, cells, outputs)
        return torch.cat([outputs[0], _as_given(outputs[1], order)], dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        order, inputs, input_weight, recurrent_weight, gates, cells, outputs = ctx.saved_tensors
        sizes, (_, words, dim) = ctx.sizes, outputs.shape
        shifts = torch.repeat_interleave(*(torch.tensor(each, dtype=torch.long) for each in (sizes[:-1], sizes[1:])))
        before = torch.arange(sizes[0], words) - shifts  # the words before all but the first ones of their texts
        i, f, g, o = gates.chunk(4, dim=2)
        curve = torch.tanh(cells)
        of_cell = o * (1 - curve.square())  # the derivative of an output by its cell
        by_gate = torch.empty_like(gates)  # those of a cell by its gates, and of an output by its own
        by_gate[..., :dim] = g * i * (1 - i)
        by_gate[:, : sizes[0], dim : 2 * dim] = 0.0
        by_gate[:, sizes[0] :, dim : 2 * dim] = (f * (1 - f))[:, sizes[0] :] * cells[:, before]
        by_gate[..., 2 * dim : 3 * dim] = i * (1 - g.square())
        by_gate[..., 3 * dim :] = curve * o * (1 - o)
        forward, backward = grads[0].chunk(2, dim=1)
        above = torch.stack([forward, backward.index_select(0, order)])  # of the outputs; later steps are added
        grad_cell = cells.new_zeros(2, sizes[0], dim)
        steps = [each.split(sizes, dim=1) for each in (above, of_cell, f, by_gate)]
        for step in reversed(range(len(sizes))):
            rows = sizes[step]
            grad, by_cell, forget, now = (each[step] for each in steps)
            own = grad_cell[:, :rows].addcmul_(grad, by_cell)
            now[..., : 3 * dim].unflatten(2, (3, dim)).mul_(own.unsqueeze(2))
            now[..., 3 * dim :].mul_(grad)
            own.mul_(forget)
            if step:
                steps[0][step - 1][:, :rows].baddbmm_(now, recurrent_weight)
        by_word = by_gate[0], _as_given(by_gate[1], order)
        return (
            None,
            None,
            by_word[0] @ input_weight[0] + by_word[1] @ input_weight[1] if ctx.needs_input_grad[2] else None,
            torch.stack([grad.T @ inputs for grad in by_word]),
            by_gate[:, sizes[0] :].mT @ outputs[:, before],
            by_gate.sum(1),
        )


def packed_bilstm(lstm: nn.Module, inputs: Tensor, sizes: list[int], order: Tensor) -> Tensor:
    """A layer of `torch.nn.LSTM` over packed words (N, I) -> (N, 2H); `sizes` and `order` are those of a `Packing`."""

    def both(name: str) -> Tensor:
        return torch.stack([getattr(lstm, f"{name}_l0"), getattr(lstm, f"{name}_l0_reverse")])

    bias = both("bias_ih") + both("bias_hh")
    states: Tensor = PackedBiLstm.apply(sizes, order, inputs, both("weight_ih"), both("weight_hh"), bias)
    return states


def _as_given(words: Tensor, order: Tensor) -> Tensor:
    """Put words of the backward direction back into the order of the inputs."""
    return torch.empty_like(words).index_copy_(0, order, words)
