"""An output layer for large vocabularies: frequent words at once, rare ones in clusters that are seldom looked into.

Grave et al. 2017, "Efficient softmax approximation for GPUs". The head gives a probability to each frequent word and to
each cluster of rarer ones; a rare word's is its cluster's times its own within the cluster, computed from a smaller state,
a quarter of the size from cluster to cluster. It is a distribution of its own, and exact: all words sum to one. Words must
be in descending frequency. Chosen against `nn.AdaptiveLogSoftmaxWithLoss`: head and clusters are output layers
of the full kind, so that they have biases, the training loss stays in bounded memory, and every weight has a gradient in
every step, which training in many processes asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.nn.output.full import SCORES, FullSoftmax, Losses, OutputLayer

SHRINK = 4  # a cluster's states are so many times smaller than those of the one before
SMALL = 1000  # words; below it there is one cluster


def cutoffs(size: int) -> tuple[int, ...]:
    """Where the head and the clusters of a vocabulary end: at its 20th, its 5th and its last word; small ones at the half.

    >>> cutoffs(50_000), cutoffs(12)
    ((2500, 10000, 50000), (6, 12))
    """
    if size < SMALL:
        return size // 2, size
    return size // 20, size // 5, size


class Tail(nn.Module):
    """A cluster: its states are made smaller, and its words have probabilities within it."""

    def __init__(self, vocabulary: int, dim: int, inner: int) -> None:
        super().__init__()
        self.projection = nn.Linear(dim, inner, bias=False)
        self.words = FullSoftmax(vocabulary, inner)

    def forward(self, states: Tensor) -> Tensor:
        """Log-probabilities of all its words, given the cluster: (n, dim) -> (n, vocabulary)."""
        log_probs: Tensor = self.words(self.projection(states))
        return log_probs


class AdaptiveSoftmax(OutputLayer):
    """`ends`: the first row after the head and after each cluster, the last one the vocabulary's size; see `cutoffs`."""

    def __init__(self, vocabulary: int, dim: int, ends: Sequence[int] | None = None) -> None:
        super().__init__()
        self.ends = tuple(ends) if ends is not None else cutoffs(vocabulary)
        if len(self.ends) < 2 or self.ends[-1] != vocabulary or any(a >= b for a, b in pairwise((0, *self.ends))):
            raise ConfigError(
                f"the clusters end at {self.ends}, for {vocabulary} words; expected at least two rising numbers from 1 on, "
                "the last one the vocabulary's size"
            )
        clusters = list(pairwise(self.ends))
        self.head = FullSoftmax(self.ends[0] + len(clusters), dim)
        self.tails = nn.ModuleList(
            Tail(end - begin, dim, max(1, dim // SHRINK**number)) for number, (begin, end) in enumerate(clusters, start=1)
        )

    @property
    def size(self) -> int:
        return self.ends[-1]

    @property
    def dim(self) -> int:
        return self.head.dim

    def forward(self, states: Tensor) -> Tensor:
        head = self.head(states)
        parts = [head[:, : self.ends[0]]]
        for number, tail in enumerate(self.tails):
            parts.append(head[:, self.ends[0] + number, None] + tail(states))
        return torch.cat(parts, dim=1)

    def log_probs(self, states: Tensor, targets: Tensor, *, numbers: int = SCORES) -> Tensor:
        found = self.head.log_probs(states, self._heads(targets), numbers=numbers)
        for tail, rows, own in self._clusters(targets):
            inside = tail.words.log_probs(tail.projection(states[rows]), own, numbers=numbers)
            found = found.index_add(0, rows, inside.to(found.dtype))
        return found

    def loss(self, states: Tensor, targets: Tensor) -> Losses:
        total, each = self.head.loss(states, self._heads(targets))
        for tail, rows, own in self._clusters(targets):  # empty ones too: all weights need their gradient
            more, inside = tail.words.loss(tail.projection(states[rows]), own)
            total, each = total + more, each.index_add(0, rows, inside.to(each.dtype))
        return total, each

    def _heads(self, targets: Tensor) -> Tensor:
        """Rows of the head: a frequent word's own, or its cluster's."""
        ends = torch.tensor(self.ends[:-1], device=targets.device)
        clusters = torch.bucketize(targets, ends, right=True)  # 0: in the head itself
        return torch.where(clusters == 0, targets, self.ends[0] + clusters - 1)

    def _clusters(self, targets: Tensor) -> Iterator[tuple[Tail, Tensor, Tensor]]:
        """Each cluster, the rows of the targets that are in it, and their numbers within it."""
        for tail, (begin, end) in zip(self.tails, pairwise(self.ends), strict=True):
            assert isinstance(tail, Tail)
            rows = ((targets >= begin) & (targets < end)).nonzero()[:, 0]
            yield tail, rows, targets[rows] - begin
