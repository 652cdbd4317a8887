"""The kernels of one step of `bptt` in PyTorch: for a CPU, and as the explanation of the Triton kernels.

All tensors belong to one step, both directions: (2, rows, ...). `restart` (rows,) is true where a sentence begins.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class PreviousCell(NamedTuple):
    """The cell state before a step."""

    carried: Tensor
    """(2, rows, dim): from the step before."""
    start: Tensor
    """(2, 1, dim): for rows where a sentence begins."""
    restart: Tensor | None
    """(rows,): these rows; None: none of them."""

    def value(self) -> Tensor:
        """(2, rows, dim)."""
        return self.carried if self.restart is None else torch.where(self.restart[:, None], self.start, self.carried)

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """All three; where there is no `restart`, another tensor that a kernel does not read."""
        return self.carried, self.start, self.start if self.restart is None else self.restart


def input_matmul(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return inputs @ weight + bias. The bias is added afterwards: `baddbmm` would write it out first."""
    return torch.bmm(inputs, weight).add_(bias)


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """Write a @ b for both directions, one after the other: a batched matmul would copy its result."""
    for direction in range(len(out)):
        torch.mm(a[direction], b[direction], out=out[direction])
    return out


def add_matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Add a @ b for both directions."""
    for direction in range(len(out)):
        out[direction].addmm_(a[direction], b[direction])


def begin(hidden: Tensor, start: Tensor, restart: Tensor | None, out: Tensor) -> None:
    """Write the hidden state before the first step: carried over, or the start state."""
    out.copy_(hidden if restart is None else torch.where(restart[:, None], start, hidden))


def cell_forward(gates: Tensor, previous: PreviousCell, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Turn `gates` (2, rows, 4 dim) into activations in place; write `cell` and `out` (2, rows, dim)."""
    i, f, g, o = gates.chunk(4, dim=2)
    i.sigmoid_()
    f.sigmoid_()
    g.tanh_()
    o.sigmoid_()
    torch.mul(f, previous.value(), out=cell)
    cell.addcmul_(i, g)
    if clip is not None:
        cell.clamp_(-clip, clip)
    torch.tanh(cell, out=out)
    out.mul_(o)


def hidden_forward(
    given: Tensor, start: Tensor, restart: Tensor | None, out: Tensor, following: Tensor | None, clip: float | None
) -> None:
    """Clip a step's output to `out` (which it may be), and write the hidden state before the next step."""
    if clip is not None:
        torch.clamp(given, -clip, clip, out=out)
    elif given.data_ptr() != out.data_ptr():
        out.copy_(given)
    if following is not None:
        begin(out, start, restart, following)


def hidden_backward(
    above: Tensor, later: Tensor | None, restart: Tensor | None, value: Tensor, out: Tensor, clip: float | None
) -> None:
    """Write the gradient of a step's output: from above and from the next step, unless a sentence begins there."""
    if later is None:
        out.copy_(above)
    else:
        torch.add(above, later if restart is None else later.masked_fill(restart[:, None], 0.0), out=out)
    if clip is not None:
        out.mul_(value.abs() < clip)


def cell_backward(
    gates: Tensor,
    previous: PreviousCell,
    cell: Tensor,
    above: Tensor,
    grad_cell: Tensor,
    grad_start: Tensor,
    clip: float | None,
) -> None:
    """Turn activations into the gradients of the gates in place; take `grad_cell` back by one step.

    Where a sentence begins, that gradient goes to `grad_start` instead.
    """
    i, f, g, o = gates.chunk(4, dim=2)
    restart = previous.restart
    curve = torch.tanh(cell)
    grad_cell.add_(torch.ops.aten.tanh_backward(above * o, curve))
    if clip is not None:
        grad_cell.masked_fill_(cell.abs() >= clip, 0.0)
    o.copy_(torch.ops.aten.sigmoid_backward(curve.mul_(above), o))
    before = grad_cell * f
    grad_input = torch.ops.aten.sigmoid_backward(grad_cell * g, i)
    g.copy_(torch.ops.aten.tanh_backward(grad_cell * i, g))
    i.copy_(grad_input)
    f.copy_(torch.ops.aten.sigmoid_backward(grad_cell * previous.value(), f))
    if restart is not None:
        grad_start.addcmul_(before, restart[:, None].to(before.dtype))
        before.masked_fill_(restart[:, None], 0.0)
    grad_cell.copy_(before)
