"""The convolutions of the character CNN with their max pooling on a GPU, without writing the products to memory.

A window of characters is contiguous in memory, so all filters over all positions are matmuls on the characters in position.
The maximum is updated position by position, together with its position; the gradient goes to that position only.

Sizes that differ between batches do not trigger recompilation (`do_not_specialize`).

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernels on a CPU in tests.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

WORDS, FILTERS, SPLIT = 64, 128, 8  # per program; and programs that share the gradient of a filter
_OPTIONS = {"num_warps": 4, "num_stages": 2}


@triton.jit(do_not_specialize=["words"])
def _forward(  # type: ignore[no-untyped-def]
    x, weight, positions, highest, where, words, row,
    DIM: tl.constexpr, NUM_FILTERS: tl.constexpr, WINDOW: tl.constexpr, WIDTH: tl.constexpr,
    WORDS: tl.constexpr, FILTERS: tl.constexpr,
):  # fmt: skip
    """x (words, row / DIM characters, DIM), weight (NUM_FILTERS, WINDOW), positions (word blocks,) -> highest, where."""
    word = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    filter = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    inner = tl.arange(0, WIDTH)
    word_ok, filter_ok, inner_ok = word < words, filter < NUM_FILTERS, inner < WINDOW
    w = tl.load(weight + filter[None, :] * WINDOW + inner[:, None], mask=filter_ok[None, :] & inner_ok[:, None], other=0.0)
    best = tl.full([WORDS, FILTERS], -float("inf"), tl.float32)
    found = tl.zeros([WORDS, FILTERS], tl.int32)
    start = x + word[:, None].to(tl.int64) * row + inner[None, :]
    for position in range(tl.load(positions + tl.program_id(0))):
        window = tl.load(start + position * DIM, mask=word_ok[:, None] & inner_ok[None, :], other=0.0)
        values = tl.dot(window, w, input_precision="ieee")
        higher = values > best
        best = tl.where(higher, values, best)
        found = tl.where(higher, position, found)
    out = word[:, None].to(tl.int64) * NUM_FILTERS + filter[None, :]
    ok = word_ok[:, None] & filter_ok[None, :]
    tl.store(highest + out, best.to(highest.dtype.element_ty), mask=ok)
    tl.store(where + out, found.to(tl.uint8), mask=ok)


@triton.jit(do_not_specialize=["words"])
def _grad_weight(  # type: ignore[no-untyped-def]
    x, positions, grad, where, out, words, row,
    DIM: tl.constexpr, NUM_FILTERS: tl.constexpr, WINDOW: tl.constexpr, WIDTH: tl.constexpr,
    WORDS: tl.constexpr, FILTERS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """out (SPLIT, NUM_FILTERS, WINDOW): each split sums the windows at the best positions of some words."""
    filter = tl.program_id(0) * FILTERS + tl.arange(0, FILTERS)
    inner = tl.arange(0, WIDTH)
    filter_ok, inner_ok = filter < NUM_FILTERS, inner < WINDOW
    sums = tl.zeros([FILTERS, WIDTH], tl.float32)
    for block in range(tl.program_id(1), tl.cdiv(words, WORDS), SPLIT):
        word = block * WORDS + tl.arange(0, WORDS)
        word_ok = word < words
        at = word[None, :].to(tl.int64) * NUM_FILTERS + filter[:, None]
        ok = word_ok[None, :] & filter_ok[:, None]
        g = tl.load(grad + at, mask=ok, other=0.0)
        best = tl.load(where + at, mask=ok, other=0).to(tl.int32)
        start = x + word[:, None].to(tl.int64) * row + inner[None, :]
        for position in range(tl.load(positions + block)):
            window = tl.load(start + position * DIM, mask=word_ok[:, None] & inner_ok[None, :], other=0.0)
            here = tl.where(best == position, g, 0.0).to(window.dtype)
            sums = tl.dot(here, window, sums, input_precision="ieee")
    to = (tl.program_id(1) * NUM_FILTERS + filter[:, None]) * WINDOW + inner[None, :]
    tl.store(out + to, sums, mask=filter_ok[:, None] & inner_ok[None, :])


@triton.jit(do_not_specialize=["words", "most"])
def _grad_windows(  # type: ignore[no-untyped-def]
    weight, positions, grad, where, out, words, most,
    NUM_FILTERS: tl.constexpr, WINDOW: tl.constexpr, WIDTH: tl.constexpr, WORDS: tl.constexpr, FILTERS: tl.constexpr,
):  # fmt: skip
    """out (words, most, WINDOW): the gradient of each window, from the filters that were highest there."""
    block, position = tl.program_id(1), tl.program_id(0)
    word = block * WORDS + tl.arange(0, WORDS)
    inner = tl.arange(0, WIDTH)
    word_ok, inner_ok = word < words, inner < WINDOW
    sums = tl.zeros([WORDS, WIDTH], tl.float32)
    if position < tl.load(positions + block):
        for begin in range(0, NUM_FILTERS, FILTERS):
            filter = begin + tl.arange(0, FILTERS)
            filter_ok = filter < NUM_FILTERS
            at = word[:, None].to(tl.int64) * NUM_FILTERS + filter[None, :]
            ok = word_ok[:, None] & filter_ok[None, :]
            g = tl.load(grad + at, mask=ok, other=0.0)
            best = tl.load(where + at, mask=ok, other=0).to(tl.int32)
            w = tl.load(
                weight + filter[:, None] * WINDOW + inner[None, :], mask=filter_ok[:, None] & inner_ok[None, :], other=0.0
            )
            sums = tl.dot(tl.where(best == position, g, 0.0).to(w.dtype), w, sums, input_precision="ieee")
    to = (word[:, None].to(tl.int64) * most + position) * WINDOW + inner[None, :]
    tl.store(out + to, sums.to(out.dtype.element_ty), mask=word_ok[:, None] & inner_ok[None, :])


class MaxPooledConvolution(torch.autograd.Function):
    """Characters (words, characters, dim), filters (count, width * dim), positions of each block of `WORDS` words ->
    each filter's maximum over the positions of its block, (words, count)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx: Any, x: Tensor, weight: Tensor, positions: Tensor, most: int) -> Tensor:
        x, weight = x.contiguous(), weight.contiguous()
        words, row = len(x), x.shape[1] * x.shape[2]
        count, window = weight.shape
        highest = x.new_empty(words, count)
        where = torch.empty(words, count, dtype=torch.uint8, device=x.device)
        sizes = {"NUM_FILTERS": count, "WINDOW": window, "WIDTH": max(16, triton.next_power_of_2(window))}
        _forward[(triton.cdiv(words, WORDS), triton.cdiv(count, FILTERS))](
            x, weight, positions, highest, where, words, row, DIM=x.shape[2], **sizes, WORDS=WORDS, FILTERS=FILTERS, **_OPTIONS
        )
        ctx.save_for_backward(x, weight, positions, where)
        ctx.most, ctx.sizes = most, sizes
        return highest

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, positions, where = ctx.saved_tensors
        grad, sizes, most = grads[0].to(x.dtype).contiguous(), ctx.sizes, ctx.most
        words, characters, dim = x.shape
        count, window = weight.shape
        parts = torch.empty(SPLIT, count, window, device=x.device)
        _grad_weight[(triton.cdiv(count, FILTERS), SPLIT)](
            x, positions, grad, where, parts, words, characters * dim,
            DIM=dim, **sizes, WORDS=WORDS, FILTERS=FILTERS, SPLIT=SPLIT, **_OPTIONS,
        )  # fmt: skip
        windows = x.new_empty(words, most, window // dim, dim)
        _grad_windows[(most, triton.cdiv(words, WORDS))](
            weight, positions, grad, where, windows, words, most, **sizes, WORDS=WORDS, FILTERS=FILTERS, **_OPTIONS
        )
        grad_x = torch.zeros_like(x, dtype=torch.float32)
        for offset in range(window // dim):  # windows overlap: each character is in as many as the window is wide
            grad_x[:, offset : offset + most] += windows[:, :, offset]
        return grad_x.to(x.dtype), parts.sum(0).to(weight.dtype), None, None
