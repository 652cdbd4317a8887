"""One step of the LSTM cell on a GPU as one kernel: gather inputs, add the recurrent matmul, gates, cell, clipping.

Imported only with CUDA, or where `TRITON_INTERPRET=1` runs the kernel on a CPU in tests.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 512


@triton.jit
def _cell(  # type: ignore[no-untyped-def]
    recurrent,  # (2, rows, 4 DIM)
    inputs,  # (2, table, 4 DIM): input matmuls with bias
    index,  # (2, ...): rows of `inputs`, `index_stride` apart in the two directions
    cell,  # (2, ..., DIM), `cell_stride` apart in the two directions; read and written
    out,  # (2, rows, DIM)
    rows,
    table,
    index_stride,
    cell_stride,
    clip,
    DIM: tl.constexpr,
    CLIP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < DIM
    direction = row // rows
    source = tl.load(index + direction * index_stride + row % rows)
    a = recurrent + row * 4 * DIM + column
    b = inputs + (direction * table + source) * 4 * DIM + column
    i = tl.load(a, mask=inside).to(tl.float32) + tl.load(b, mask=inside).to(tl.float32)
    f = tl.load(a + DIM, mask=inside).to(tl.float32) + tl.load(b + DIM, mask=inside).to(tl.float32)
    g = tl.load(a + 2 * DIM, mask=inside).to(tl.float32) + tl.load(b + 2 * DIM, mask=inside).to(tl.float32)
    o = tl.load(a + 3 * DIM, mask=inside).to(tl.float32) + tl.load(b + 3 * DIM, mask=inside).to(tl.float32)
    position = cell + direction * cell_stride + (row % rows) * DIM + column
    c = tl.load(position, mask=inside)
    c = tl.sigmoid(f) * c + tl.sigmoid(i) * (2 * tl.sigmoid(2 * g) - 1)
    if CLIP:
        c = tl.minimum(tl.maximum(c, -clip), clip)
    tl.store(position, c, mask=inside)
    m = tl.sigmoid(o) * (2 * tl.sigmoid(2 * c) - 1)
    tl.store(out + row * DIM + column, m.to(out.dtype.element_ty), mask=inside)


def cell_step(recurrent: Tensor, inputs: Tensor, index: Tensor, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Advance `cell` (2, all rows, dim) by one step for the first rows and write their outputs to `out` (2, rows, dim)."""
    rows, dim = out.shape[1:]
    _cell[(2 * rows, triton.cdiv(dim, BLOCK))](
        recurrent,
        inputs,
        index,
        cell,
        out,
        rows,
        inputs.shape[1],
        index.stride(0),
        cell.stride(0),
        float(clip or 0.0),
        DIM=dim,
        CLIP=clip is not None,
        BLOCK=BLOCK,
    )
