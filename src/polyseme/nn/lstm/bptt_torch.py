"""What a step of `bptt` is made of, in PyTorch: for a CPU, and as the words that explain the Triton kernels.

All tensors are one step's, for both directions: (2, rows, ...). `anew` (rows,) says which rows begin a sentence there.
"""

from __future__ import annotations

import torch
from torch import Tensor


def input_matmul(inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """inputs @ weight + bias; the bias comes after, since a product that begins with it would write it out first."""
    return torch.bmm(inputs, weight).add_(bias)


def matmul(a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    """a @ b for both directions; one after the other, since a batched product would copy what it writes."""
    for direction in range(len(out)):
        torch.mm(a[direction], b[direction], out=out[direction])
    return out


def add_matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Adds a @ b for both directions."""
    for direction in range(len(out)):
        out[direction].addmm_(a[direction], b[direction])


def begin(hidden: Tensor, start: Tensor, anew: Tensor | None, out: Tensor) -> None:
    """The state that the first step begins from: carried, or the start state."""
    out.copy_(hidden if anew is None else torch.where(anew[:, None], start, hidden))


def cell_forward(
    gates: Tensor, previous: Tensor, start: Tensor, anew: Tensor | None, cell: Tensor, out: Tensor, clip: float | None
) -> None:
    """Turns `gates` (2, rows, 4 dim) into activations in place; writes `cell` and `out` (2, rows, dim)."""
    i, f, g, o = gates.chunk(4, dim=2)
    i.sigmoid_()
    f.sigmoid_()
    g.tanh_()
    o.sigmoid_()
    if anew is not None:
        previous = torch.where(anew[:, None], start, previous)
    torch.mul(f, previous, out=cell)
    cell.addcmul_(i, g)
    if clip is not None:
        cell.clamp_(-clip, clip)
    torch.tanh(cell, out=out)
    out.mul_(o)


def hidden_forward(
    given: Tensor, start: Tensor, anew: Tensor | None, out: Tensor, following: Tensor | None, clip: float | None
) -> None:
    """Clips what the cell or the projection gave to `out` (which it may be), and makes the next step's state."""
    if clip is not None:
        torch.clamp(given, -clip, clip, out=out)
    elif given.data_ptr() != out.data_ptr():
        out.copy_(given)
    if following is not None:
        begin(out, start, anew, following)


def hidden_backward(
    above: Tensor, later: Tensor | None, anew: Tensor | None, value: Tensor, out: Tensor, clip: float | None
) -> None:
    """The gradient of a step's output: from above and from the step after it, unless a sentence begins there."""
    if later is None:
        out.copy_(above)
    else:
        torch.add(above, later if anew is None else later.masked_fill(anew[:, None], 0.0), out=out)
    if clip is not None:
        out.mul_(value.abs() < clip)


def cell_backward(
    gates: Tensor,
    previous: Tensor,
    start: Tensor,
    anew: Tensor | None,
    cell: Tensor,
    above: Tensor,
    grad_cell: Tensor,
    grad_start: Tensor,
    clip: float | None,
) -> None:
    """Turns activations into the gradients of the gates in place; brings `grad_cell` from this step to the one before.

    Where a sentence begins, that gradient goes to `grad_start` instead.
    """
    i, f, g, o = gates.chunk(4, dim=2)
    if anew is not None:
        previous = torch.where(anew[:, None], start, previous)
    curve = torch.tanh(cell)
    grad_cell.add_(torch.ops.aten.tanh_backward(above * o, curve))
    if clip is not None:
        grad_cell.masked_fill_(cell.abs() >= clip, 0.0)
    o.copy_(torch.ops.aten.sigmoid_backward(curve.mul_(above), o))
    before = grad_cell * f
    grad_input = torch.ops.aten.sigmoid_backward(grad_cell * g, i)
    g.copy_(torch.ops.aten.tanh_backward(grad_cell * i, g))
    i.copy_(grad_input)
    f.copy_(torch.ops.aten.sigmoid_backward(grad_cell * previous, f))
    if anew is not None:
        grad_start.addcmul_(before, anew[:, None].to(before.dtype))
        before.masked_fill_(anew[:, None], 0.0)
    grad_cell.copy_(before)
