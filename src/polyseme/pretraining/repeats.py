"""Held-out sentences that are in the training text too: a perplexity on them is too good.

Short sentences do not count: "He nodded ." is in any two texts of a kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import arg
from polyseme.text.shards.shards import Shards

SHORT = 5
"""Words; shorter sentences do not count."""
MIN_SHARE = 0.02
"""Of the held-out sentences: so many are reported."""
FEWEST = 5
"""Fewer are no problem of the text."""
_BLOCK = 1_000_000  # sentences that are compared at once


def repeated_sentences(shards: Shards, train: range, held_out: range) -> int:
    """Return how many of the held-out sentences are in the training text, word for word."""
    wanted = [number for number in held_out if shards.offsets[number + 1] - shards.offsets[number] >= SHORT]
    if not wanted:
        return 0
    keys, found = _keys(shards, np.array(wanted)), set[bytes]()
    for begin in range(train.start, train.stop, _BLOCK):
        numbers = np.arange(begin, min(begin + _BLOCK, train.stop))
        alike = numbers[np.isin(_keys(shards, numbers), keys)]
        found.update(shards.sentence(number).tobytes() for number in alike.tolist())
    return sum(shards.sentence(number).tobytes() in found for number in wanted)


def repeats_message(repeated: int, held_out: int) -> str | None:
    """Say that held-out sentences are in the training text, and what helps; None: too few to matter.

    >>> repeats_message(48, 143).partition(", so ")[0]
    '48 of the 143 held-out sentences are in the training text too'
    >>> repeats_message(4, 143)
    """
    if repeated < max(FEWEST, MIN_SHARE * held_out):
        return None
    what = f"{repeated:,} of the {held_out:,} held-out sentences are in the training text too"
    remove = "remove repeated sentences (write one per line, then `polyseme corpus dedupe --threshold 1` drops them)"
    other = f"give another text as the last {arg('corpus')}, and {arg('dev_size')}, the number of its sentences, to hold it out"
    return f"{what}, so the perplexity is too good: {remove}, or {other}"


def _keys(shards: Shards, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A number for each sentence, equal for equal sentences: of its length and of four of its words."""
    begins, lengths = shards.offsets[numbers], shards.offsets[numbers + 1] - shards.offsets[numbers]
    keys = lengths.astype(np.uint64)
    for part in range(4):
        words = shards.words[np.minimum(begins + lengths * part // 4, shards.total - 1)]
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + words.astype(np.uint64)
    return keys
