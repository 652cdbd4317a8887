"""Count the n-grams of a text, order by order, by sorting.

The n-grams of an order are those of the order below with one more word: a pair of integers, and so one integer, which NumPy
sorts. The result is sorted by words, as a model's table is, and has for each n-gram the index of its context (without the
last word) and of the n-gram to which it backs off (without the first). Chosen against a dictionary of tuples, which takes
some two hundred bytes per n-gram: with the smoothing, 30 million words (72 million distinct n-grams up to order 5) take 47
seconds and 4.3 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.text.shards.shards import Shards

BEGIN, END, UNKNOWN = 0, 1, 2
"""Ids of the special tokens in every vocabulary."""

IntArray = NDArray[np.signedinteger]


@dataclass(frozen=True)
class NgramCounts:
    """The distinct n-grams of one order, sorted by their words, (n,) each."""

    context: IntArray
    """Index of the first n - 1 words in the order below."""
    word: IntArray
    """The last word."""
    shorter: IntArray
    """Index of the last n - 1 words in the order below."""
    begins: NDArray[np.bool_]
    """Whether the first word is the begin token."""
    count: IntArray
    """How often it occurs."""

    def __len__(self) -> int:
        return len(self.word)


def to_stream(shards: Shards, ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Concatenate all sentences of a text with their begin and end tokens; `ids`: the id of each of its types, (types,).

    Sentences without words are left out.
    """
    lengths = np.diff(shards.offsets)
    ends = np.cumsum(lengths[lengths > 0] + 2)
    stream = np.full(int(ends[-1]) if len(ends) else 0, UNKNOWN, dtype=np.int32)
    stream[ends - 1] = END
    inside = np.ones(len(stream), dtype=bool)
    inside[ends - 1] = False
    begins = np.append(0, ends[:-1])
    stream[begins] = BEGIN
    inside[begins] = False
    stream[inside] = ids[shards.words]
    return stream


def count_ngrams(stream: NDArray[np.int32], size: int, order: int) -> Iterator[NgramCounts]:
    """Yield the n-grams of order 1, 2, ... of a `to_stream`; none crosses the end of a sentence.

    >>> a, b = 3, 4
    >>> ones, twos = count_ngrams(np.array([BEGIN, a, b, END, BEGIN, a, END], dtype=np.int32), 5, 2)
    >>> list(zip(twos.context.tolist(), twos.word.tolist(), twos.count.tolist()))
    [(0, 3, 2), (3, 1, 1), (3, 4, 1), (4, 1, 1)]
    """
    number: type[np.signedinteger] = np.int32 if len(stream) < np.iinfo(np.int32).max else np.int64
    words: IntArray = np.arange(size, dtype=number)
    counts = np.bincount(stream, minlength=size)
    yield NgramCounts(np.zeros_like(words), words, np.zeros_like(words), words == BEGIN, counts)
    begins = words == BEGIN
    where: IntArray = np.arange(len(stream), dtype=number)  # where the n-grams of this order begin
    index: IntArray = stream.astype(number)  # by where it begins, the index of each among the distinct ones
    for length in range(2, order + 1):
        where = where[stream[where + (length - 2)] != END]  # those followed by one more word
        keys = index[where].astype(np.int64) * size + stream[where + (length - 1)]
        by_key = np.argsort(keys)
        keys, where = keys[by_key], where[by_key]
        del by_key
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        context, word = np.divmod(keys[first], size)
        del keys
        begins = begins[context]
        count = np.diff(np.append(first, len(where))).astype(number)
        yield NgramCounts(context.astype(number), word.astype(number), index[where[first] + 1], begins, count)
        index = np.zeros_like(index)
        index[where] = np.repeat(np.arange(len(first), dtype=number), count)
