"""The full softmax loss and its gradients on a GPU, without writing the scores to memory.

The gradient of a state is the mean of all rows, weighted by their probabilities, minus the target's row. That is attention
over the vocabulary, computed like flash attention (Dao et al. 2022) in the same pass as the loss. A second kernel computes the
scores again for the gradient of the rows.

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernels on a CPU in tests.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2E = tl.constexpr(1.4426950408889634)
ROWS, COLUMNS = 64, 64  # of a tile; the fastest of thirteen on an H200 for both kernels, with these options
_OPTIONS = {"num_warps": 4, "num_stages": 3}


@triton.jit
def _read(  # type: ignore[no-untyped-def]
    states, weight, bias, top, mean, count, vocabulary,
    DIM: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """For each state: the logsumexp of its scores, and the mean of all rows weighted by their probabilities."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inner, column = tl.arange(0, WIDTH), tl.arange(0, COLUMNS)
    row_ok, inner_ok = row < count, inner < DIM
    here = row[:, None].to(tl.int64) * DIM + inner[None, :]
    x = tl.load(states + here, mask=row_ok[:, None] & inner_ok[None, :], other=0.0)
    highest = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    sums = tl.zeros([ROWS, WIDTH], tl.float32)
    for begin in range(0, vocabulary, COLUMNS):
        word = begin + column
        word_ok = word < vocabulary
        w = tl.load(weight + word[:, None] * DIM + inner[None, :], mask=word_ok[:, None] & inner_ok[None, :], other=0.0)
        b = tl.load(bias + word, mask=word_ok, other=-float("inf")).to(tl.float32)
        scores = tl.dot(x, tl.trans(w), input_precision="ieee") * LOG2E + (b * LOG2E)[None, :]
        high = tl.maximum(highest, tl.max(scores, 1))
        p = tl.exp2(scores - high[:, None])
        shrink = tl.exp2(highest - high)
        total = total * shrink + tl.sum(p, 1)
        sums = tl.dot(p.to(w.dtype), w, sums * shrink[:, None], input_precision="ieee")
        highest = high
    tl.store(top + row, highest / LOG2E + tl.log(total), mask=row_ok)
    tl.store(mean + here, sums / total[:, None], mask=row_ok[:, None] & inner_ok[None, :])


@triton.jit
def _write(  # type: ignore[no-untyped-def]
    states, weight, bias, top, scale, grad_weight, grad_bias, count, vocabulary,
    DIM: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """For each word: the sum of all states, weighted by the word's probability and the state's `scale`."""
    word = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inner, column = tl.arange(0, WIDTH), tl.arange(0, COLUMNS)
    word_ok, inner_ok = word < vocabulary, inner < DIM
    here = word[:, None].to(tl.int64) * DIM + inner[None, :]
    w = tl.load(weight + here, mask=word_ok[:, None] & inner_ok[None, :], other=0.0)
    b = tl.load(bias + word, mask=word_ok, other=0.0).to(tl.float32) * LOG2E
    sums = tl.zeros([ROWS, WIDTH], tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    for begin in range(0, count, COLUMNS):
        row = begin + column
        row_ok = row < count
        x = tl.load(states + row[:, None] * DIM + inner[None, :], mask=row_ok[:, None] & inner_ok[None, :], other=0.0)
        high = tl.load(top + row, mask=row_ok, other=float("inf")) * LOG2E
        factor = tl.load(scale + row, mask=row_ok, other=0.0)
        scores = tl.dot(w, tl.trans(x), input_precision="ieee") * LOG2E + b[:, None]
        p = tl.exp2(scores - high[None, :]) * factor[None, :]
        total += tl.sum(p, 1)
        sums = tl.dot(p.to(x.dtype), x, sums, input_precision="ieee")
    tl.store(grad_weight + here, sums, mask=word_ok[:, None] & inner_ok[None, :])
    tl.store(grad_bias + word, total, mask=word_ok)


def _sizes(dim: int) -> dict[str, int]:
    return {"DIM": dim, "WIDTH": max(16, triton.next_power_of_2(dim)), "ROWS": ROWS, "COLUMNS": COLUMNS}


class FlashLoss(torch.autograd.Function):
    """states (n, dim), weight (words, dim), bias (words,), targets (n,) -> the loss of each target, (n,)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
        states, rows = states.contiguous(), weight.to(states.dtype).contiguous()
        count, dim = states.shape
        top = torch.empty(count, device=states.device)
        grad = torch.empty(count, dim, device=states.device)
        sizes = _sizes(dim)
        _read[(triton.cdiv(count, ROWS),)](states, rows, bias, top, grad, count, len(rows), **sizes, **_OPTIONS)
        wanted = rows.index_select(0, targets).float()
        losses = top - (states * wanted).sum(1) - bias.index_select(0, targets)
        ctx.save_for_backward(states, rows, bias, targets, top, grad.sub_(wanted))
        ctx.types = weight.dtype, bias.dtype
        return losses

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        states, rows, bias, targets, top, grad_states = ctx.saved_tensors
        scale = grads[0].float().contiguous()
        count, dim = states.shape
        grad_weight, grad_bias = torch.empty_like(rows, dtype=torch.float32), torch.empty_like(bias, dtype=torch.float32)
        sizes = _sizes(dim)
        _write[(triton.cdiv(len(rows), ROWS),)](
            states, rows, bias, top, scale, grad_weight, grad_bias, count, len(rows), **sizes, **_OPTIONS
        )
        grad_weight.index_add_(0, targets, states.float() * -scale[:, None])
        grad_bias.index_add_(0, targets, -scale)
        kinds = ctx.types
        grad_states = (grad_states * scale[:, None]).to(states.dtype)
        return grad_states, grad_weight.to(kinds[0]), grad_bias.to(kinds[1]), None
