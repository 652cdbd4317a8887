"""Texts that are part of other texts, such as the phrases of a sentence: they belong together when data is divided.

A data set of phrases (SST-2 of GLUE has 67,349 of 6,920 sentences) has each word many times. Were its texts divided at random,
every held-out phrase would have parts among the others, and a score on it would say nothing of new text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyseme.tasks.sparse_features import Text, units

MAX_UNITS = 40
"""Longer texts are not looked for in others."""
_MAX_WORK = 400_000_000
_BASE = np.uint64(0x9E3779B97F4A7C15)


def containing_texts(texts: Sequence[Text]) -> list[int]:
    """Return for each text the number of a text that contains it: the longest one, or its own where there is none.

    >>> containing_texts(["a good film", "good film", "film", "bad"])
    [0, 0, 0, 3]
    """
    ids: dict[str, int] = {}
    split = [np.array([ids.setdefault(unit, len(ids) + 1) for unit in units(text)], dtype=np.uint64) for text in texts]
    lengths = np.array([len(each) for each in split])
    found = np.arange(len(texts))
    short = np.unique(lengths[(lengths > 0) & (lengths <= MAX_UNITS)])
    if int(short.max(initial=0)) * int(lengths.sum()) > _MAX_WORK:
        return found.tolist()
    order = np.argsort(-lengths, kind="stable")  # long texts first, so that the first to contain a text is the longest
    joined = np.concatenate([split[number] for number in order] or [np.zeros(0, dtype=np.uint64)])
    owner = np.repeat(order, lengths[order])
    ends = np.repeat(np.cumsum(lengths[order]), lengths[order])
    wanted, hashes = set(short.tolist()), np.zeros(len(joined), dtype=np.uint64)
    for length in range(1, int(short.max(initial=0)) + 1):
        hashes = hashes[: len(joined) - length + 1] * _BASE + joined[length - 1 :]  # of all runs of so many units
        if length not in wanted:
            continue
        inside = np.arange(len(hashes)) + length <= ends[: len(hashes)]  # of one text
        starts, first = np.unique(hashes[inside], return_index=True)
        holder = owner[: len(hashes)][inside][first]
        rows = np.flatnonzero(lengths == length)
        keys = np.array([_hash(split[row]) for row in rows], dtype=np.uint64)
        position = np.minimum(np.searchsorted(starts, keys), len(starts) - 1)
        known = starts[position] == keys
        found[rows[known]] = holder[position[known]]
    return found.tolist()


def _hash(values: np.ndarray) -> int:
    total = 0
    for value in values.tolist():
        total = (total * int(_BASE) + value) & 0xFFFFFFFFFFFFFFFF
    return total
