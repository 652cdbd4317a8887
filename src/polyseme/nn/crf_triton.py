"""The forward and backward sums of a linear-chain CRF in one launch: one program per sentence and direction loops over the
words.

In plain PyTorch (`crf.plain_sums`) each word is about eight small kernels, and a GPU mostly waits for their launch. Here the
transition scores and the state (tags,) stay in registers; only scores are read and sums written.

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernel on a CPU in tests.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

_CELLS, _WARPS = 1024, 8  # transitions per warp, and most warps; on an H200 more are slower


@triton.jit(do_not_specialize=["words"])  # differs between batches: do not recompile
def _walk(  # type: ignore[no-untyped-def]
    scores,  # (batch, words, TAGS)
    mask,  # (batch, words)
    transitions,  # (TAGS, TAGS)
    start,  # (TAGS,)
    end,  # (TAGS,)
    out,  # (2, batch, words, TAGS)
    words,
    TAGS: tl.constexpr,
    SIZE: tl.constexpr,
):
    sentence = tl.program_id(0).to(tl.int64)
    backward = tl.program_id(1)
    tag = tl.arange(0, SIZE)
    inside = tag < TAGS
    both = inside[:, None] & inside[None, :]
    if backward:
        between = tl.load(transitions + tag[None, :] * TAGS + tag[:, None], mask=both, other=0.0)  # (from, to) in reading order
        state = tl.load(end + tag, mask=inside, other=0.0)
    else:
        between = tl.load(transitions + tag[:, None] * TAGS + tag[None, :], mask=both, other=0.0)
        state = tl.load(start + tag, mask=inside, other=0.0)
    # no path comes from the tags that pad the block, but paths may go to them: so their states stay finite
    between = tl.where(inside[:, None], between, -float("inf"))
    word = backward * (words - 1)  # the first word
    step = 1 - 2 * backward
    scores += sentence * words * TAGS + tag
    out += (backward * tl.num_programs(0) + sentence) * words * TAGS + tag
    mask += sentence * words + backward  # a transition belongs to the later of its two words
    state += tl.load(scores + word * TAGS, mask=inside, other=0.0)
    tl.store(out + word * TAGS, state, mask=inside)
    for _ in range(1, words):
        word += step
        own = tl.load(scores + word * TAGS, mask=inside, other=0.0)
        moved = tl.load(mask + word)
        paths = state[:, None] + between
        top = tl.max(paths, axis=0)
        total = tl.log(tl.sum(tl.exp(paths - top[None, :]), axis=0)) + top
        state = tl.where(moved, total, state) + own
        tl.store(out + word * TAGS, state, mask=inside)


def sums(scores: Tensor, mask: Tensor, transitions: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """`crf.plain_sums` of scores (batch, words, tags) in float32, words at least one; without gradients."""
    scores, mask, transitions, start, end = (each.contiguous() for each in (scores, mask, transitions, start, end))
    batch, words, tags = scores.shape
    out = scores.new_empty(2, batch, words, tags)
    if batch:
        size = triton.next_power_of_2(tags)
        warps = min(max(1, size * size // _CELLS), _WARPS)
        with torch.cuda.device(scores.device) if scores.is_cuda else nullcontext():  # kernels run on the current GPU
            _walk[(batch, 2)](scores, mask, transitions, start, end, out, words, TAGS=tags, SIZE=size, num_warps=warps)
    forward, backward = out
    return forward, backward
