"""The rows of a table that are nearest to a vector, exactly.

One matrix product over a table that may lie on the disk and comes into memory some rows at a time: 0.4 s for a million
rows of 512 numbers on one core. An approximate index would be faster far above that, and would miss some neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.errors import UsageError

_SEARCHED = 1 << 12  # rows at a time; from four times as many on, it is memory that takes the time: three times as long


@dataclass(frozen=True)
class SearchResult:
    """The nearest rows, nearest first."""

    rows: NDArray[np.int64]
    """(found,): their numbers."""
    cosines: NDArray[np.float32]
    """(found,): how near they are, from -1 to 1."""


def nearest_rows(
    table: NDArray[np.float16], vector: NDArray[np.float32], count: int, among: NDArray[np.bool_] | None = None
) -> SearchResult:
    """The rows of a table of unit vectors (rows, dim) nearest to a vector (dim,); of equally near ones the first."""
    if count < 1:
        raise UsageError(f"count is {count}; it must be at least 1")
    if vector.shape != table.shape[1:]:
        raise UsageError(f"the vector is of shape {vector.shape}; the index has vectors of {table.shape[1]} numbers")
    query = torch.from_numpy(unit(vector))
    rows, cosines = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
    for begin in range(0, len(table), _SEARCHED):
        end = min(begin + _SEARCHED, len(table))
        allowed = np.arange(begin, end) if among is None else begin + np.flatnonzero(among[begin:end])
        block = np.array(table[begin:end] if among is None else table[allowed])  # off the disk
        rows = np.concatenate([rows, allowed])
        cosines = np.concatenate([cosines, (torch.from_numpy(block).float() @ query).numpy()])
        if len(rows) > count:
            best = cosines >= np.partition(cosines, -count)[-count]
            rows, cosines = rows[best], cosines[best]
    order = np.lexsort((rows, -cosines))[:count]
    return SearchResult(rows[order], cosines[order].clip(-1, 1))  # 16-bit vectors are not quite of length 1


def unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Vectors (..., dim) brought to length 1; zeros stay zeros."""
    whole = vectors.astype(np.float32)
    lengths = np.linalg.norm(whole, axis=-1, keepdims=True)
    return (whole / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)
