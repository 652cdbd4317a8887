"""Sentences of different lengths laid out time-major with no padding between them.

Rows are sorted by length, longest first; step t then holds the t-th word of the first `sizes[t]` rows, and all steps lie
one after another. It is the layout of `torch.nn.utils.rnn.PackedSequence`, kept by hand because both reading directions
share it: the backward one puts its t-th word *from the end* in the place where the forward one puts its t-th word.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


class Packing:
    """The layout for given lengths (each at least 1), in any order; everything lives on the CPU.

    >>> packing = Packing(torch.tensor([1, 3]))
    >>> packing.sizes                               # two sentences at step 0, one at steps 1 and 2
    [2, 1, 1]
    >>> packing.rows.tolist(), packing.steps.tolist()   # of each packed word: its sentence and its step
    ([1, 0, 1, 1], [0, 0, 1, 2])
    """

    def __init__(self, lengths: Tensor) -> None:
        lengths, self.order = torch.sort(lengths, descending=True, stable=True)  # order: sorted row -> row as given
        steps = torch.arange(int(lengths[0]))[:, None]
        inside = steps < lengths  # (steps, rows)
        self.sizes: list[int] = inside.sum(1).tolist()
        self.steps, place = inside.nonzero(as_tuple=True)
        self.rows = self.order[place]


def last_words(sizes: list[int]) -> Tensor:
    """The packed place of each sorted row's last word.

    >>> last_words([2, 1, 1]).tolist()
    [3, 1]
    """
    counts = torch.tensor(sizes)
    starts = torch.cumsum(counts, 0) - counts
    rows = torch.arange(sizes[0])
    lengths = (rows < counts[:, None]).sum(0)
    return starts[lengths - 1] + rows


def blocks(sizes: list[int], words: int) -> Iterator[list[int]]:
    """Runs of steps with at most `words` words together (a larger step stands alone).

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
    """The way to rows of equal length and back.

    Gives the packed place of each word of (rows, steps), 0 on the padding behind a row, and the number of each packed word
    among the (rows * steps) padded ones.

    >>> places, numbers = padded([2, 1, 1])
    >>> places.tolist(), numbers.tolist()
    ([[0, 2, 3], [1, 0, 0]], [0, 3, 1, 2])
    """
    counts = torch.tensor(sizes)
    starts = torch.cumsum(counts, 0) - counts
    rows = torch.arange(sizes[0])[:, None]
    places = torch.where(rows < counts, starts + rows, 0)
    steps = torch.repeat_interleave(torch.arange(len(sizes)), counts)
    numbers = (torch.arange(len(steps)) - starts[steps]) * len(sizes) + steps
    return places, numbers
