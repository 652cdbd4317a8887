"""Which sentences go together into one batch, as arrays of their positions.

`by_words` puts sentences of like length together and bounds the padded size, which is what memory and time depend on;
`in_order` keeps the order of arrival, which a model that carries its state from batch to batch needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError

Positions = NDArray[np.int64]


def by_words(lengths: Sequence[int], *, words: int = 4096, rows: int = 128) -> list[Positions]:
    """Batches of at most `rows` sentences and `words` padded words, longest first; a longer sentence stands alone.

    Longest first, so that what does not fit into memory fails at once and not after an hour.

    >>> [batch.tolist() for batch in by_words([2, 5, 3, 2], words=6)]
    [[1], [2, 0], [3]]
    """
    if words < 1 or rows < 1:
        raise UsageError(f"a batch of {rows} rows and {words} words is empty; both must be 1 or more")
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = max(int(sizes[order[start]]), 1)
        stop = start + min(rows, max(words // longest, 1))
        batches.append(order[start:stop])
        start = stop
    return batches


def in_order(count: int, rows: int) -> list[Positions]:
    """Batches of `rows` sentences in the order of arrival; the last may be smaller.

    >>> [batch.tolist() for batch in in_order(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    if rows < 1:
        raise UsageError(f"a batch of {rows} rows is empty; rows must be 1 or more")
    return [np.arange(start, min(start + rows, count), dtype=np.int64) for start in range(0, count, rows)]
