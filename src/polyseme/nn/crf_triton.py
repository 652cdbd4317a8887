"""The log-sums of a linear-chain CRF in one launch: a program for each sentence and direction walks over the words.

In plain PyTorch (`crf.plain_sums`) each word is some eight small kernels one after another, and a GPU mostly waits for them to
be launched. Here the scores of moves stay in registers and so does the state, (tags,); only scores are read and sums written.

Imported only where CUDA is, or where `TRITON_INTERPRET=1` runs the same kernel on a CPU in tests.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from torch import Tensor

_CELLS, _WARPS = 1024, 8  # moves of a warp, and most warps; on an H200 more warps wait for each other longer than they save


@triton.jit(do_not_specialize=["words"])  # it differs from batch to batch, and is no reason to compile anew
def _walk(  # type: ignore[no-untyped-def]
    scores,  # (batch, words, TAGS)
    mask,  # (batch, words)
    moves,  # (TAGS, TAGS)
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
        between = tl.load(moves + tag[None, :] * TAGS + tag[:, None], mask=both, other=0.0)  # (from, to), as the walk goes
        state = tl.load(end + tag, mask=inside, other=0.0)
    else:
        between = tl.load(moves + tag[:, None] * TAGS + tag[None, :], mask=both, other=0.0)
        state = tl.load(start + tag, mask=inside, other=0.0)
    # nothing comes from tags that only fill up the block, but one may go to them: so their own states are finite
    between = tl.where(inside[:, None], between, -float("inf"))
    word = backward * (words - 1)  # where the walk begins
    step = 1 - 2 * backward
    scores += sentence * words * TAGS + tag
    out += (backward * tl.num_programs(0) + sentence) * words * TAGS + tag
    mask += sentence * words + backward  # a move belongs to the later of its two words
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


def sums(scores: Tensor, mask: Tensor, moves: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
    """`crf.plain_sums` of scores (batch, words, tags) in float32, words at least one; without gradients."""
    scores, mask, moves, start, end = (each.contiguous() for each in (scores, mask, moves, start, end))
    batch, words, tags = scores.shape
    out = scores.new_empty(2, batch, words, tags)
    if batch:
        size = triton.next_power_of_2(tags)
        warps = min(max(1, size * size // _CELLS), _WARPS)
        with torch.cuda.device(scores.device) if scores.is_cuda else nullcontext():  # a kernel runs on the current GPU
            _walk[(batch, 2)](scores, mask, moves, start, end, out, words, TAGS=tags, SIZE=size, num_warps=warps)
    before, behind = out
    return before, behind
