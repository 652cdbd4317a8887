"""The kernels of one step of `bptt` on a GPU, in Triton: one launch each where PyTorch needs about ten.

`bptt_torch` says what each does. Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernels on a CPU in tests. The
two directions of a tensor lie `..._stride` numbers apart; its rows are contiguous.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from polyseme.nn.lstm.bptt_torch import PreviousCell

BLOCK = 1024


@triton.jit
def _hidden_forward(  # type: ignore[no-untyped-def]
    given, start, restart, out, following, given_stride, out_stride, following_stride, numbers, clip,
    WIDTH: tl.constexpr, CLIP: tl.constexpr, RESTART: tl.constexpr, OUT: tl.constexpr, FOLLOWING: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # within one direction: row * WIDTH + column
    direction = tl.program_id(1).to(tl.int64)
    inside = place < numbers
    value = tl.load(given + direction * given_stride + place, mask=inside)
    if CLIP:
        value = tl.minimum(tl.maximum(value.to(tl.float32), -clip), clip)
    if OUT:
        tl.store(out + direction * out_stride + place, value.to(out.dtype.element_ty), mask=inside)
    if FOLLOWING:
        value = value.to(tl.float32)
        if RESTART:
            begins = tl.load(restart + place // WIDTH, mask=inside, other=0)
            first = tl.load(start + direction * WIDTH + place % WIDTH, mask=inside).to(tl.float32)
            value = tl.where(begins != 0, first, value)
        tl.store(following + direction * following_stride + place, value.to(following.dtype.element_ty), mask=inside)


@triton.jit
def _cell_forward(  # type: ignore[no-untyped-def]
    gates, previous, start, restart, cell, out, rows, gates_stride, previous_stride, cell_stride, out_stride, clip,
    DIM: tl.constexpr, CLIP: tl.constexpr, RESTART: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) % rows
    direction = tl.program_id(0).to(tl.int64) // rows
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < DIM
    a = gates + direction * gates_stride + row * 4 * DIM + column
    i = tl.sigmoid(tl.load(a, mask=inside).to(tl.float32))
    f = tl.sigmoid(tl.load(a + DIM, mask=inside).to(tl.float32))
    g = 2 * tl.sigmoid(2 * tl.load(a + 2 * DIM, mask=inside).to(tl.float32)) - 1
    o = tl.sigmoid(tl.load(a + 3 * DIM, mask=inside).to(tl.float32))
    c = tl.load(previous + direction * previous_stride + row * DIM + column, mask=inside)
    if RESTART:
        begins = tl.full([BLOCK], 0, tl.int32) + tl.load(restart + row).to(tl.int32) != 0
        c = tl.where(begins, tl.load(start + direction * DIM + column, mask=inside & begins, other=0.0), c)
    c = f * c + i * g
    if CLIP:
        c = tl.minimum(tl.maximum(c, -clip), clip)
    kind = gates.dtype.element_ty
    tl.store(a, i.to(kind), mask=inside)
    tl.store(a + DIM, f.to(kind), mask=inside)
    tl.store(a + 2 * DIM, g.to(kind), mask=inside)
    tl.store(a + 3 * DIM, o.to(kind), mask=inside)
    tl.store(cell + direction * cell_stride + row * DIM + column, c, mask=inside)
    m = o * (2 * tl.sigmoid(2 * c) - 1)
    tl.store(out + direction * out_stride + row * DIM + column, m.to(kind), mask=inside)


@triton.jit
def _hidden_backward(  # type: ignore[no-untyped-def]
    above, later, restart, value, out, above_stride, later_stride, value_stride, out_stride, numbers, clip,
    WIDTH: tl.constexpr, CLIP: tl.constexpr, RESTART: tl.constexpr, LATER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    direction = tl.program_id(1).to(tl.int64)
    inside = place < numbers
    grad = tl.load(above + direction * above_stride + place, mask=inside).to(tl.float32)
    if LATER:
        more = tl.load(later + direction * later_stride + place, mask=inside).to(tl.float32)
        if RESTART:
            more = tl.where(tl.load(restart + place // WIDTH, mask=inside, other=0) != 0, 0.0, more)
        grad += more
    if CLIP:
        h = tl.load(value + direction * value_stride + place, mask=inside).to(tl.float32)
        grad = tl.where((h >= clip) | (h <= -clip), 0.0, grad)
    tl.store(out + direction * out_stride + place, grad.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _cell_backward(  # type: ignore[no-untyped-def]
    gates, previous, start, restart, cell, above, grad_cell, grad_start, rows,
    gates_stride, previous_stride, cell_stride, above_stride, clip,
    DIM: tl.constexpr, CLIP: tl.constexpr, RESTART: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) % rows
    direction = tl.program_id(0).to(tl.int64) // rows
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < DIM
    a = gates + direction * gates_stride + row * 4 * DIM + column
    i = tl.load(a, mask=inside).to(tl.float32)
    f = tl.load(a + DIM, mask=inside).to(tl.float32)
    g = tl.load(a + 2 * DIM, mask=inside).to(tl.float32)
    o = tl.load(a + 3 * DIM, mask=inside).to(tl.float32)
    c = tl.load(cell + direction * cell_stride + row * DIM + column, mask=inside)
    dm = tl.load(above + direction * above_stride + row * DIM + column, mask=inside).to(tl.float32)
    place = (direction * rows + row) * DIM + column
    dc = tl.load(grad_cell + place, mask=inside)
    before = tl.load(previous + direction * previous_stride + row * DIM + column, mask=inside)
    if RESTART:
        begins = tl.full([BLOCK], 0, tl.int32) + tl.load(restart + row).to(tl.int32) != 0
        first = tl.load(start + direction * DIM + column, mask=inside & begins, other=0.0)
        before = tl.where(begins, first, before)
    curve = 2 * tl.sigmoid(2 * c) - 1
    dc += dm * o * (1 - curve * curve)
    if CLIP:
        dc = tl.where((c >= clip) | (c <= -clip), 0.0, dc)
    kind = gates.dtype.element_ty
    tl.store(a, (dc * g * i * (1 - i)).to(kind), mask=inside)
    tl.store(a + DIM, (dc * before * f * (1 - f)).to(kind), mask=inside)
    tl.store(a + 2 * DIM, (dc * i * (1 - g * g)).to(kind), mask=inside)
    tl.store(a + 3 * DIM, (dm * curve * o * (1 - o)).to(kind), mask=inside)
    dc = dc * f
    if RESTART:
        known = tl.load(grad_start + place, mask=inside & begins, other=0.0)
        tl.store(grad_start + place, known + dc, mask=inside & begins)
        dc = tl.where(begins, 0.0, dc)
    tl.store(grad_cell + place, dc, mask=inside)


def input_matmul(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return inputs @ weight + bias for both directions at once."""
    return torch.baddbmm(bias, inputs, weight)


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Write a @ b for both directions at once."""
    return torch.bmm(a, b, out=out)


def add_matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Add a @ b for both directions at once."""
    torch.baddbmm(out, a, b, out=out)


def begin(hidden: Tensor, start: Tensor, restart: Tensor | None, out: Tensor) -> None:
    """Write the hidden state before the first step: carried over, or the start state."""
    hidden_forward(hidden.contiguous(), start, restart, hidden, out, None)


def hidden_forward(
    given: Tensor, start: Tensor, restart: Tensor | None, out: Tensor, following: Tensor | None, clip: float | None
) -> None:
    """Clip a step's output to `out` (which it may be), and write the hidden state before the next step."""
    rows, width = given.shape[1:]
    to_out = clip is not None or out.data_ptr() != given.data_ptr()
    if not to_out and following is None:
        return
    target = out if following is None else following
    _hidden_forward[(triton.cdiv(rows * width, BLOCK), 2)](
        given, start, start if restart is None else restart, out, target,
        given.stride(0), out.stride(0), target.stride(0), rows * width, float(clip or 0.0),
        WIDTH=width, CLIP=clip is not None, RESTART=restart is not None, OUT=to_out, FOLLOWING=following is not None,
        BLOCK=BLOCK,
    )  # fmt: skip


def cell_forward(gates: Tensor, previous: PreviousCell, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Turn `gates` (2, rows, 4 dim) into activations in place; write `cell` and `out` (2, rows, dim)."""
    rows, dim = cell.shape[1:]
    block = min(BLOCK, triton.next_power_of_2(dim))
    _cell_forward[(2 * rows, triton.cdiv(dim, block))](
        gates, *previous.tensors(), cell, out, rows,
        gates.stride(0), previous.carried.stride(0), cell.stride(0), out.stride(0), float(clip or 0.0),
        DIM=dim, CLIP=clip is not None, RESTART=previous.restart is not None, BLOCK=block,
    )  # fmt: skip


def hidden_backward(
    above: Tensor, later: Tensor | None, restart: Tensor | None, value: Tensor, out: Tensor, clip: float | None
) -> None:
    """Write the gradient of a step's output: from above and from the next step, unless a sentence begins there."""
    rows, width = out.shape[1:]
    other = above if later is None else later
    _hidden_backward[(triton.cdiv(rows * width, BLOCK), 2)](
        above, other, above if restart is None else restart, value, out,
        above.stride(0), other.stride(0), value.stride(0), out.stride(0), rows * width, float(clip or 0.0),
        WIDTH=width, CLIP=clip is not None, RESTART=restart is not None, LATER=later is not None, BLOCK=BLOCK,
    )  # fmt: skip


def cell_backward(
    gates: Tensor,
    previous: PreviousCell,
    cell: Tensor,
    above: Tensor,
    grad_cell: Tensor,
    grad_start: Tensor,
    clip: float | None,
) -> None:
    """Turn activations into the gradients of the gates in place; take `grad_cell` back by one step."""
    rows, dim = cell.shape[1:]
    block = min(BLOCK, triton.next_power_of_2(dim))
    _cell_backward[(2 * rows, triton.cdiv(dim, block))](
        gates, *previous.tensors(), cell, above, grad_cell, grad_start, rows,
        gates.stride(0), previous.carried.stride(0), cell.stride(0), above.stride(0), float(clip or 0.0),
        DIM=dim, CLIP=clip is not None, RESTART=previous.restart is not None, BLOCK=block,
    )  # fmt: skip
