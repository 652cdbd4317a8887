"""All steps of an LSTM layer on a GPU as one kernel, for weights small enough to stay in the GPU's cache.

A program takes 16 sentences of one direction and reads them to their ends: the state stays with it, and nothing waits for other
programs. In every step it passes over the recurrent and projection weights, which all programs read from the L2 cache. With
larger weights, or in fp32, one matmul per step for all sentences is faster (`cuda`); an H200 reads 1.9 million words a second
in 16 bits with this kernel and 0.7 to 0.85 million without (1,024 units, 128 outputs).

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernel on a CPU in tests.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from polyseme.nn.to_device import to_device

ROWS = 16  # sentences of a program: the least that the matrix units take
_TILE = 1 << 14  # bytes of a tile of weights; two stages of five tiles fit into shared memory


@triton.jit
def _steps(  # type: ignore[no-untyped-def]
    inputs,  # (2, table, 4 DIM): input matmuls with bias
    index,  # (2, ...): rows of `inputs` for packed words, `index_stride` apart in the two directions
    starts,  # (steps,): the packed position of the first word of each step
    lengths,  # (rows,): steps of each row, longest first
    hidden,  # (2, rows, OUT), read and written
    cell,  # (2, rows, DIM), read and written
    recurrent,  # (2, OUT, 4 DIM)
    projection,  # (2, DIM, OUT)
    out,  # (2, ..., OUT), `out_stride` apart in the two directions
    rows,
    table,
    index_stride,
    out_stride,
    cell_clip,
    projection_clip,
    DIM: tl.constexpr,
    OUT: tl.constexpr,
    WIDTH: tl.constexpr,  # OUT, rounded up to a power of two
    CLIP_CELL: tl.constexpr,
    CLIP_PROJECTION: tl.constexpr,
    UNITS: tl.constexpr,
    ROWS: tl.constexpr,
):
    first = tl.program_id(0) * ROWS
    direction = tl.program_id(1).to(tl.int64)
    row = first + tl.arange(0, ROWS)
    wide = tl.arange(0, WIDTH)
    length = tl.load(lengths + row, mask=row < rows, other=0)
    own = (row < rows)[:, None] & (wide < OUT)[None, :]
    place = hidden + (direction * rows + row[:, None]) * OUT + wide[None, :]
    h = tl.load(place, mask=own, other=0.0)
    for step in range(tl.load(lengths + first)):
        alive = step < length
        position = tl.load(starts + step) + row
        source = tl.load(index + direction * index_stride + position, mask=alive, other=0)
        given = inputs + (direction * table + source)[:, None] * (4 * DIM)
        new = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
        for begin in range(0, DIM, UNITS):
            unit = begin + tl.arange(0, UNITS)
            inside = unit < DIM
            both = alive[:, None] & inside[None, :]
            weights = (wide < OUT)[:, None] & inside[None, :]
            w = recurrent + direction * OUT * 4 * DIM + wide[:, None] * (4 * DIM) + unit[None, :]
            x = given + unit[None, :]
            i = tl.dot(h, tl.load(w, mask=weights, other=0.0), input_precision="ieee")
            f = tl.dot(h, tl.load(w + DIM, mask=weights, other=0.0), input_precision="ieee")
            g = tl.dot(h, tl.load(w + 2 * DIM, mask=weights, other=0.0), input_precision="ieee")
            o = tl.dot(h, tl.load(w + 3 * DIM, mask=weights, other=0.0), input_precision="ieee")
            i += tl.load(x, mask=both, other=0.0).to(tl.float32)
            f += tl.load(x + DIM, mask=both, other=0.0).to(tl.float32)
            g += tl.load(x + 2 * DIM, mask=both, other=0.0).to(tl.float32)
            o += tl.load(x + 3 * DIM, mask=both, other=0.0).to(tl.float32)
            memory = cell + (direction * rows + row[:, None]) * DIM + unit[None, :]
            c = tl.load(memory, mask=both, other=0.0)
            c = tl.sigmoid(f) * c + tl.sigmoid(i) * (2 * tl.sigmoid(2 * g) - 1)
            if CLIP_CELL:
                c = tl.minimum(tl.maximum(c, -cell_clip), cell_clip)
            tl.store(memory, c, mask=both)
            m = (tl.sigmoid(o) * (2 * tl.sigmoid(2 * c) - 1)).to(h.dtype)
            p = projection + direction * DIM * OUT + unit[:, None] * OUT + wide[None, :]
            columns = inside[:, None] & (wide < OUT)[None, :]
            new = tl.dot(m, tl.load(p, mask=columns, other=0.0), new, input_precision="ieee")
        if CLIP_PROJECTION:
            new = tl.minimum(tl.maximum(new, -projection_clip), projection_clip)
        h = tl.where(alive[:, None], new.to(h.dtype), h)
        target = out + direction * out_stride + position.to(tl.int64)[:, None] * OUT + wide[None, :]
        tl.store(target, h, mask=alive[:, None] & (wide < OUT)[None, :])
        tl.debug_barrier()  # the cells of this step are written before the next reads them
    tl.store(place, h, mask=own)


def run_steps(
    inputs: Tensor,
    index: Tensor,
    sizes: list[int],
    hidden: Tensor,
    cell: Tensor,
    weights: tuple[Tensor, Tensor],
    clips: tuple[float | None, float | None],
    out: Tensor,
) -> None:
    """Read some steps of packed words: fill `out` (2, words, outputs), and advance `hidden` and `cell` (2, rows, ...).

    `weights`: recurrent and projection; `clips`: of the cell and of the projection.
    """
    recurrent, projection = weights
    rows, dim, outputs = cell.shape[1], cell.shape[2], out.shape[2]
    counts = torch.tensor(sizes)
    starts = torch.cumsum(counts, 0) - counts
    lengths = (torch.arange(rows) < counts[:, None]).sum(0)
    both = to_device(torch.cat([starts, lengths]).to(torch.int32), out.device)
    width = max(16, triton.next_power_of_2(outputs))
    units = max(16, min(_TILE // (width * hidden.element_size()), triton.next_power_of_2(dim)))
    _steps[(triton.cdiv(sizes[0], ROWS), 2)](
        inputs,
        index,
        both,
        both[len(sizes) :],
        hidden,
        cell,
        recurrent,
        projection,
        out,
        rows,
        inputs.shape[1],
        index.stride(0),
        out.stride(0),
        float(clips[0] or 0.0),
        float(clips[1] or 0.0),
        DIM=dim,
        OUT=outputs,
        WIDTH=width,
        CLIP_CELL=clips[0] is not None,
        CLIP_PROJECTION=clips[1] is not None,
        UNITS=units,
        ROWS=ROWS,
        num_warps=4,
        num_stages=2,
    )
