"""Adaptive softmax: an output layer for large vocabularies, with rare words in clusters that are seldom evaluated.

Grave et al. 2017, "Efficient softmax approximation for GPUs". The head gives a probability to each frequent word and to each
cluster of rarer ones. The probability of a rare word is that of its cluster times its own within the cluster, computed from a
smaller state: a quarter of the size from cluster to cluster. It is an exact distribution: all words sum to one. Words must be
sorted by descending frequency. Chosen over `nn.AdaptiveLogSoftmaxWithLoss`: head and clusters are full softmax layers, so they
have biases, the training loss has bounded memory, and every weight gets a gradient in every step, as distributed training
needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.nn.output.full import SCORES, FullSoftmax, Losses, OutputLayer

SHRINK = 4  # states of a cluster are this many times smaller than those of the previous one
SMALL = 1000  # words; smaller vocabularies have one cluster


def cutoffs(size: int) -> tuple[int, ...]:
    """Return where the head and the clusters end: at 1/20, 1/5 and all of the vocabulary; small ones at half and all.

    >>> cutoffs(50_000), cutoffs(12)
    ((2500, 10000, 50000), (6, 12))
    """
    if size < SMALL:
        return size // 2, size
    return size // 20, size // 5, size


class Tail(nn.Module):
    """A cluster: projects states to a smaller size and scores its words."""

    def __init__(self, vocabulary: int, dim: int, inner: int) -> None:
        super().__init__()
        self.projection = nn.Linear(dim, inner, bias=False)
        self.words = FullSoftmax(vocabulary, inner)

    def forward(self, states: Tensor) -> Tensor:
        """Return log-probabilities of its words given the cluster: (n, dim) -> (n, vocabulary)."""
        log_probs: Tensor = self.words(self.projection(states))
        return log_probs


class AdaptiveSoftmax(OutputLayer):
    """`ends`: the first row after the head and after each cluster; the last is the vocabulary size; see `cutoffs`."""

    def __init__(self, vocabulary: int, dim: int, ends: Sequence[int] | None = None) -> None:
        super().__init__()
        self.ends = tuple(ends) if ends is not None else cutoffs(vocabulary)
        if len(self.ends) < 2 or self.ends[-1] != vocabulary or any(a >= b for a, b in pairwise((0, *self.ends))):
            raise ConfigError(
                f"the clusters end at {self.ends}, for {vocabulary} words; expected two or more increasing numbers from 1, "
                "the last one the size of the vocabulary"
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
        for tail, rows, own in self._clusters(targets):  # empty ones too: all weights need a gradient
            more, inside = tail.words.loss(tail.projection(states[rows]), own)
            total, each = total + more, each.index_add(0, rows, inside.to(each.dtype))
        return total, each

    def _heads(self, targets: Tensor) -> Tensor:
        """Return rows of the head: that of a frequent word, or of the cluster."""
        ends = torch.tensor(self.ends[:-1], device=targets.device)
        clusters = torch.bucketize(targets, ends, right=True)  # 0: in the head
        return torch.where(clusters == 0, targets, self.ends[0] + clusters - 1)

    def _clusters(self, targets: Tensor) -> Iterator[tuple[Tail, Tensor, Tensor]]:
        """Yield each cluster, the rows of its targets, and their ids within it."""
        for tail, (begin, end) in zip(self.tails, pairwise(self.ends), strict=True):
            assert isinstance(tail, Tail)
            rows = ((targets >= begin) & (targets < end)).nonzero()[:, 0]
            yield tail, rows, targets[rows] - begin
