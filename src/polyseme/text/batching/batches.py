"""Which sentences go together into one batch, as arrays of their positions.

`batch_by_words` groups sentences of similar length and limits the padded size, which decides memory and time;
`batch_in_order` keeps the given order, for models that carry their state from batch to batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError, arg

Positions = NDArray[np.int64]
_LONG = 4  # times the words, for batches of a few long sentences


def batch_by_words(lengths: Sequence[int], *, words: int = 4096, batch_size: int = 128, least: int = 1) -> list[Positions]:
    """Return batches of at most `batch_size` sentences and `words` padded words; a longer sentence is a batch of its own.

    Longest sentences come first, so that a batch that does not fit into memory fails at once and not after an hour.
    `least`: a batch of fewer sentences may have up to four times the words, if the shortest has half the words of the longest.

    >>> [batch.tolist() for batch in batch_by_words([2, 5, 3, 2], words=6)]
    [[1], [2, 0], [3]]
    >>> [batch.tolist() for batch in batch_by_words([2, 5, 3, 2], words=6, least=3)]
    [[1, 2], [0, 3]]
    """
    if words < 1 or batch_size < 1:
        raise UsageError(f"{arg('batch_size', batch_size)} with {words} words is an empty batch; both must be 1 or more")
    sizes = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-sizes, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = max(int(sizes[order[start]]), 1)
        similar = int((2 * sizes[order[start : start + least]] >= longest).sum())
        stop = start + min(batch_size, max(words // longest, min(similar, _LONG * words // longest), 1))
        batches.append(order[start:stop])
        start = stop
    return batches


def batch_in_order(count: int, batch_size: int) -> list[Positions]:
    """Return batches of `batch_size` sentences in the given order; the last may be smaller.

    >>> [batch.tolist() for batch in batch_in_order(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise UsageError(f"{arg('batch_size', batch_size)} is too small; it must be 1 or more")
    return [np.arange(start, min(start + batch_size, count), dtype=np.int64) for start in range(0, count, batch_size)]
