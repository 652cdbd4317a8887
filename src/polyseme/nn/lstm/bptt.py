"""One LSTM layer of both directions over packed rows, with backpropagation through time (BPTT) written out.

Autograd over a loop would keep every intermediate result of every step. Here a step keeps its gates, cell and output, in place
of each other where possible. A step is two batched matmuls and two element-wise kernels in each pass, and the matmuls with the
inputs and for the weight gradients run for all steps at once. The kernels of a step are Triton's on a GPU (`bptt_triton`) and
PyTorch's elsewhere (`bptt_torch`).

Shapes: D = 2 directions, T steps, R rows; I inputs, H cells, P outputs. Cells keep the type of the cell state, which is float32
in any precision.
"""

from __future__ import annotations

import importlib.util
import types
from typing import Any

import torch
from torch import Tensor

from polyseme.nn.lstm import bptt_torch
from polyseme.nn.lstm.bptt_torch import PreviousCell

Clips = tuple[float | None, float | None]


def kernels(device: torch.device) -> types.ModuleType:
    """The kernels of a step, for a device."""
    if device.type == "cuda" and importlib.util.find_spec("triton") is not None:
        from polyseme.nn.lstm import bptt_triton

        return bptt_triton
    return bptt_torch


class Bptt(torch.autograd.Function):
    """Begins (T, R) or None, clips; inputs (D, T, R, I), weights (D, 4H, I) and (D, 4H, P), bias (D, 4H), projection (D, P, H)
    or None, state (D, R, P) and (D, R, H), start state (D, 1, P) and (D, 1, H) -> outputs (D, T, R, P), the cells of all steps
    (D, T, R, H), through which no gradient flows, and those of the last one (D, R, H)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx: Any, begins: Tensor | None, clips: Clips, *tensors: Any) -> tuple[Tensor, Tensor, Tensor]:
        inputs, input_weight, recurrent_weight, bias, projection, hidden, cell, start_hidden, start_cell = tensors
        step = kernels(inputs.device)
        directions, steps, rows, width = inputs.shape
        dim = cell.shape[2]
        flat = inputs.reshape(directions, steps * rows, width)
        gates = step.input_matmul(flat, input_weight.mT, bias[:, None]).view(directions, steps, rows, 4 * dim)
        cells = cell.new_empty(directions, steps, rows, dim)
        middle = inputs.new_empty(directions, steps, rows, dim)  # the output of a cell, before the projection
        before = inputs.new_empty(directions, steps, rows, hidden.shape[2])  # the hidden state before each step
        outputs = torch.empty_like(before)
        cell, start_hidden, start_cell = cell.contiguous(), start_hidden.contiguous(), start_cell.contiguous()
        recurrent = recurrent_weight.mT
        step.begin(hidden, start_hidden, None if begins is None else begins[0], before[:, 0])
        for t in range(steps):
            now = gates[:, t]
            step.add_matmul(before[:, t], recurrent, now)
            restart = None if begins is None else begins[t]
            previous = PreviousCell(cell if t == 0 else cells[:, t - 1], start_cell, restart)
            step.cell_forward(now, previous, cells[:, t], middle[:, t], clips[0])
            given = middle[:, t]
            if projection is not None:
                given = step.matmul(given, projection.mT, outputs[:, t])
            following = before[:, t + 1] if t + 1 < steps else None
            restart = None if begins is None or following is None else begins[t + 1]
            clip = clips[1] if projection is not None else None
            step.hidden_forward(given, start_hidden, restart, outputs[:, t], following, clip)
        ctx.save_for_backward(
            flat, input_weight, recurrent_weight, projection, gates, cells, middle, before, outputs, cell, start_cell, begins
        )
        ctx.clips = clips
        ctx.mark_non_differentiable(cells)
        ctx.set_materialize_grads(False)
        return outputs, cells, cells[:, -1].clone()

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        (flat, input_weight, recurrent_weight, projection, gates, cells, middle, before, outputs, cell, start_cell, begins) = (
            ctx.saved_tensors
        )
        step = kernels(flat.device)
        cell_clip, hidden_clip = ctx.clips
        directions, steps, rows, dim = cells.shape
        width = before.shape[3]
        grad_outputs = torch.zeros_like(before) if grads[0] is None else grads[0].contiguous()
        grad_hidden = torch.empty_like(before)
        grad_before = torch.empty_like(before)  # of the hidden state before each step
        grad_middle = torch.empty_like(middle[:, 0])
        grad_cell = torch.zeros_like(cell) if grads[2] is None else grads[2].clone(memory_format=torch.contiguous_format)
        grad_start = torch.zeros_like(cell)  # of the start state's cell, for each row
        grad_gates = gates  # each step's gates are read once and overwritten by their gradient
        for t in reversed(range(steps)):
            later = grad_before[:, t + 1] if t + 1 < steps else None
            restart = None if begins is None or later is None else begins[t + 1]
            clip = hidden_clip if projection is not None else None
            step.hidden_backward(grad_outputs[:, t], later, restart, outputs[:, t], grad_hidden[:, t], clip)
            above = grad_hidden[:, t]
            if projection is not None:
                above = step.matmul(above, projection, grad_middle)
            restart = None if begins is None else begins[t]
            previous = PreviousCell(cell if t == 0 else cells[:, t - 1], start_cell, restart)
            step.cell_backward(gates[:, t], previous, cells[:, t], above, grad_cell, grad_start, cell_clip)
            step.matmul(grad_gates[:, t], recurrent_weight, grad_before[:, t])
        flat_gates = grad_gates.view(directions, steps * rows, 4 * dim)
        grad_projection = None
        if projection is not None:
            grad_projection = torch.bmm(grad_hidden.view(directions, -1, width).mT, middle.view(directions, -1, dim))
        first = grad_before[:, 0]
        grad_start_hidden = None
        if begins is not None:
            grad_start_hidden = (grad_before * begins[..., None]).float().sum((1, 2), keepdim=True)[:, 0].to(before.dtype)
            first = first.masked_fill(begins[0][:, None], 0.0)
        return (
            None,
            None,
            torch.bmm(flat_gates, input_weight).view(directions, steps, rows, -1),
            torch.bmm(flat_gates.mT, flat),
            torch.bmm(flat_gates.mT, before.view(directions, -1, width)),
            flat_gates.sum(1, dtype=torch.promote_types(flat_gates.dtype, torch.float32)).to(flat_gates.dtype),
            grad_projection,
            first,
            grad_cell,
            grad_start_hidden,
            grad_start.sum(1, keepdim=True) if begins is not None else None,
        )
