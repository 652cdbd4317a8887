"""One step of the LSTM cell on a GPU as one kernel: gather the input products, add the recurrent ones, gates, cell, clip.

Imported only where CUDA is, or where `TRITON_INTERPRET=1` runs the same kernel on a CPU in tests.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 512


@triton.jit
def _cell(  # type: ignore[no-untyped-def]
    recurrent,  # (2, rows, 4 DIM)
    products,  # (2, table, 4 DIM): input products with their bias
    index,  # (2, ...): rows of `products`, `index_stride` apart in the two directions
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
    b = products + (direction * table + source) * 4 * DIM + column
    i = tl.load(a, mask=inside).to(tl.float32) + tl.load(b, mask=inside).to(tl.float32)
    f = tl.load(a + DIM, mask=inside).to(tl.float32) + tl.load(b + DIM, mask=inside).to(tl.float32)
    g = tl.load(a + 2 * DIM, mask=inside).to(tl.float32) + tl.load(b + 2 * DIM, mask=inside).to(tl.float32)
    o = tl.load(a + 3 * DIM, mask=inside).to(tl.float32) + tl.load(b + 3 * DIM, mask=inside).to(tl.float32)
    place = cell + direction * cell_stride + (row % rows) * DIM + column
    c = tl.load(place, mask=inside)
    c = tl.sigmoid(f) * c + tl.sigmoid(i) * (2 * tl.sigmoid(2 * g) - 1)
    if CLIP:
        c = tl.minimum(tl.maximum(c, -clip), clip)
    tl.store(place, c, mask=inside)
    m = tl.sigmoid(o) * (2 * tl.sigmoid(2 * c) - 1)
    tl.store(out + row * DIM + column, m.to(out.dtype.element_ty), mask=inside)


def cell_step(recurrent: Tensor, products: Tensor, index: Tensor, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Brings `cell` (2, all rows, dim) one step on for the first rows and writes their outputs to `out` (2, rows, dim)."""
    rows, dim = out.shape[1:]
    _cell[(2 * rows, triton.cdiv(dim, BLOCK))](
        recurrent,
        products,
        index,
        cell,
        out,
        rows,
        products.shape[1],
        index.stride(0),
        cell.stride(0),
        float(clip or 0.0),
        DIM=dim,
        CLIP=clip is not None,
        BLOCK=BLOCK,
    )
