"""Sentences of different lengths in a time-major layout without padding.

Rows are sorted by length, longest first. Step t holds word t of the first `sizes[t]` rows, and all steps are concatenated. It
is the layout of `torch.nn.utils.rnn.PackedSequence`, built by hand because both directions share it: the backward direction
puts its word t *from the end* where the forward direction puts its word t.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


class Packing:
    """The layout for given lengths (each 1 or more), in any order; all tensors are on the CPU.

    >>> packing = Packing(torch.tensor([1, 3]))
    >>> packing.sizes                               # two sentences at step 0, one at steps 1 and 2
    [2, 1, 1]
    >>> packing.rows.tolist(), packing.steps.tolist()   # sentence and step of each packed word
    ([1, 0, 1, 1], [0, 0, 1, 2])
    """

    def __init__(self, lengths: Tensor) -> None:
        lengths, self.order = torch.sort(lengths, descending=True, stable=True)  # order: sorted row -> row as given
        steps = torch.arange(int(lengths[0]))[:, None]
        inside = steps < lengths  # (steps, rows)
        self.sizes: list[int] = inside.sum(1).tolist()
        self.steps, position = inside.nonzero(as_tuple=True)
        self.rows = self.order[position]
        self._lengths = lengths

    def reversed_order(self) -> Tensor:
        """Return the packed position of the word that the backward direction reads in place of each packed word.

        >>> Packing(torch.tensor([1, 3])).reversed_order().tolist()
        [3, 1, 2, 0]
        """
        starts = torch.cumsum(torch.tensor([0, *self.sizes]), 0)[:-1]
        sorted_rows = torch.arange(len(self.steps)) - starts[self.steps]
        return starts[self._lengths[sorted_rows] - 1 - self.steps] + sorted_rows


def last_words(sizes: list[int]) -> Tensor:
    """Return the packed position of each sorted row's last word.

    >>> last_words([2, 1, 1]).tolist()
    [3, 1]
    """
    counts = torch.tensor(sizes)
    starts = torch.cumsum(counts, 0) - counts
    rows = torch.arange(sizes[0])
    lengths = (rows < counts[:, None]).sum(0)
    return starts[lengths - 1] + rows


def blocks(sizes: list[int], words: int) -> Iterator[list[int]]:
    """Split steps into blocks of at most `words` words; a larger step is a block of its own.

    >>> list(blocks([2, 1, 1], 3))
    [[2, 1], [1]]
    """
    block: list[int] = []
    total = 0
    for size in sizes:
        if block and total + size > words:
            yield block
            block, total = [], 0
        block.append(size)
        total += size
    yield block


def padded(sizes: list[int]) -> tuple[Tensor, Tensor]:
    """Return the indexes from packed to padded words and back.

    The first (rows, steps) has the packed position of each padded word, 0 on padding. The second has the position of each
    packed word among the rows * steps padded ones.

    >>> packed, flat = padded([2, 1, 1])
    >>> packed.tolist(), flat.tolist()
    ([[0, 2, 3], [1, 0, 0]], [0, 3, 1, 2])
    """
    counts = torch.tensor(sizes)
    starts = torch.cumsum(counts, 0) - counts
    rows = torch.arange(sizes[0])[:, None]
    packed = torch.where(rows < counts, starts + rows, 0)
    steps = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    flat = (torch.arange(len(steps)) - starts[steps]) * len(sizes) + steps
    return packed, flat
