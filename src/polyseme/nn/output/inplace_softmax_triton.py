"""`softmax_` as one kernel, with one program per row.

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernel on a CPU in tests.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 4096


@triton.jit
def _softmax(scores, own, top, words, OWN: tl.constexpr, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    high = tl.full([BLOCK], -1e30, tl.float32)  # below any score, but finite: inf - inf is NaN
    total = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, words, BLOCK):
        inside = begin + column < words
        x = tl.load(scores + row * words + begin + column, mask=inside, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(high, x)
        total = total * tl.exp(high - higher) + tl.exp(x - higher)
        high = higher
    highest = tl.max(high, 0)
    if OWN:
        mine = tl.load(own + row).to(tl.float32)
        highest = tl.maximum(highest, mine)
    sums = tl.sum(total * tl.exp(high - highest), 0)
    if OWN:
        sums += tl.exp(mine - highest)
    log_sum = highest + tl.log(sums)
    tl.store(top + row, log_sum)
    for begin in range(0, words, BLOCK):
        inside = begin + column < words
        place = scores + row * words + begin + column
        x = tl.load(place, mask=inside, other=0.0).to(tl.float32)
        tl.store(place, tl.exp(x - log_sum).to(scores.dtype.element_ty), mask=inside)


def softmax_(scores: Tensor, own: Tensor | None = None) -> Tensor:
    """Turn scores (n, words) into exp(score - top) in place and return top (n,); see `inplace_softmax`."""
    assert scores.is_contiguous()
    rows, words = scores.shape
    top = torch.empty(rows, device=scores.device)
    if rows:
        block = min(BLOCK, triton.next_power_of_2(words))
        _softmax[(rows,)](scores, top if own is None else own.contiguous(), top, words, OWN=own is not None, BLOCK=block)
    return top
