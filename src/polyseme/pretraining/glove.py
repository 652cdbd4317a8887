"""GloVe (Pennington, Socher and Manning 2014): vectors whose products are the logarithms of co-occurrence counts.

    loss = sum over pairs with a count X:  1/2 f(X) (w . c + b + b' - log X)^2,   f(X) = min(1, (X / x_max)^alpha)

Each word has a vector w and, as a neighbour, a vector c; their sum is the result, as published. Written here, because no
maintained library trains it: pairs come in shuffled batches instead of one by one, and the gradients of a word in a batch are
summed before the step of AdaGrad, which divides by the root of all squares so far. A bias is a column of its table beside a
column of ones in the other one, so that one product gives all three terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import Advance, progress
from polyseme.base.run import Run
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.epoch_job import EpochJob
from polyseme.pretraining.glove_config import LONG_TEXT, SAMPLE, GlovePretraining
from polyseme.pretraining.result import WordVectorResult
from polyseme.text.counting.cooccurrence import Cooccurrences, count_cooccurrences, frequent_types, subsampling_probabilities
from polyseme.text.shards.shards import Shards
from polyseme.text.word_vectors import WordVectors

FIRST_SQUARE = 0.01  # initial sum of AdaGrad; from 1, rare words move ten times slower for many epochs
BATCH_CPU, BATCH_CUDA = 4096, 65536  # pairs, each of which is trained in both directions


class GloveJob(EpochJob):
    """The training of a new model."""

    method: GlovePretraining

    def fit(self) -> WordVectorResult:
        """Count the pairs of the text, train on them, and write the model."""
        method = self.method
        shards = self.encode_text()
        pairs, words = _count_pairs(shards, method, self.run.seed)
        model = Glove(pairs, method, self.run)
        checkpoints = self.checkpoints(shards)
        checkpoint = checkpoints.newest()
        done, loss = 0, None
        if checkpoint is not None:
            model.restore(checkpoint.tensors)
            done, loss = checkpoint.step, float(checkpoint.values["loss"])
        with progress("training", (method.epochs - done) * len(pairs), "pairs") as advance:
            for epoch in range(done, method.epochs):
                loss = model.epoch(epoch, advance)
                checkpoints.write(epoch + 1, model.state(), {"loss": loss})
        vectors = WordVectors(words, model.vectors().cpu().numpy(), len(words))
        table = WordVectorTable.from_vectors(vectors, splitter=self.corpus.splitter)
        return self.write(table, shards, checkpoints.seconds, loss, pairs=len(pairs))


def _count_pairs(shards: Shards, method: GlovePretraining, seed: int) -> tuple[Cooccurrences, list[str]]:
    types = frequent_types(shards, method.min_count, method.vocabulary_size)
    if not len(types):
        raise PolysemeError(f"no word of the text occurs {method.min_count} times: give a lower {arg('min_count')}")
    sample = (SAMPLE if shards.total >= LONG_TEXT else 0.0) if method.sample is None else method.sample
    kept = subsampling_probabilities(np.asarray(shards.counts)[types], sample) if sample else None
    with progress("counting pairs", shards.total, "words") as advance:
        pairs = count_cooccurrences(shards, types, method.window, advance, kept=kept, seed=seed)
    if not len(pairs):
        more = f", or a larger {arg('sample')}" if sample else ""
        raise PolysemeError(f"no two known words are near each other: give more text, or a lower {arg('min_count')}{more}")
    words = shards.most_frequent(int(types.max()) + 1)
    return pairs, [words[number] for number in types.tolist()]


class Glove:
    """Both tables of vectors, with AdaGrad's sums, and the pairs that they are trained on."""

    def __init__(self, pairs: Cooccurrences, config: GlovePretraining, run: Run) -> None:
        self.config, self._seed, self._device = config, run.seed, run.device
        self.first, self.second, counts = (
            torch.from_numpy(array).to(run.device) for array in (pairs.first, pairs.second, pairs.counts)
        )
        self.logs = counts.log()
        self.weights = (counts / config.x_max).pow(config.alpha).clamp(max=1)
        initial = (torch.rand(2, pairs.size, config.dim + 2, generator=self._generator(-1)) - 0.5) / config.dim
        self.word, self.context = initial.to(run.device).unbind()  # (words, dim + 2): vector, bias, ones; vector, ones, bias
        self.word[:, -1] = self.context[:, -2] = 1
        self.squares = [torch.full_like(table, FIRST_SQUARE) for table in (self.word, self.context)]

    def loss(self) -> float:
        """Return the mean loss over all pairs in both directions, of the tables as they are now."""
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        positions = torch.arange(len(self.logs), device=self._device)
        for chosen in positions.split(BATCH_CUDA):
            total += self._batch(chosen).loss
        return float(total) / self.directed_pairs

    @property
    def directed_pairs(self) -> int:
        """Pairs in both directions; a word beside itself has one."""
        return 2 * len(self.logs) - int((self.first == self.second).sum())

    def epoch(self, number: int, advance: Advance | None = None) -> float:
        """Train for one epoch, in an order that the seed and the epoch decide; return the mean loss on the way."""
        order = torch.randperm(len(self.logs), generator=self._generator(number)).to(self._device)
        size = self.config.batch_pairs or (BATCH_CUDA if self._device.type == "cuda" else BATCH_CPU)
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        for chosen in order.split(size):
            batch = self._batch(chosen)
            total += batch.loss
            self._step(batch)
            if advance is not None:
                advance(len(chosen))
        mean = float(total) / self.directed_pairs
        if not mean < float("inf"):
            raise PolysemeError(f"the loss is {mean} after epoch {number + 1}: give a lower {arg('learning_rate')}")
        return mean

    def _batch(self, chosen: Tensor) -> _Batch:
        """Return pairs in both directions, with the gradient of the loss for each."""
        one, two = self.first[chosen], self.second[chosen]
        turned = (one != two).nonzero()[:, 0]
        rows, columns = torch.cat([one, two[turned]]), torch.cat([two, one[turned]])
        logs, weights = (torch.cat([all_of[chosen], all_of[chosen[turned]]]) for all_of in (self.logs, self.weights))
        products = torch.einsum("nd,nd->n", self.word.index_select(0, rows), self.context.index_select(0, columns))
        slope = weights * (products - logs)  # (pairs,)
        return _Batch(rows, columns, slope, 0.5 * (slope * (products - logs)).sum(dtype=torch.float64))

    def _step(self, batch: _Batch) -> None:
        """Make a step of AdaGrad; the columns of ones are fixed."""
        slope = batch.slope
        words = _gradient(batch.rows, batch.columns, slope, self.context)
        contexts = _gradient(batch.columns, batch.rows, slope, self.word)
        for (rows, gradient), table, squares, fixed in (
            (words, self.word, self.squares[0], -1),
            (contexts, self.context, self.squares[1], -2),
        ):
            gradient[:, fixed] = 0
            total = squares.index_select(0, rows).addcmul_(gradient, gradient)
            squares.index_copy_(0, rows, total)
            table.index_add_(0, rows, gradient.mul_(total.rsqrt_()), alpha=-self.config.learning_rate)

    def vectors(self) -> Tensor:
        """Return the vectors, (words, dim)."""
        return (self.word + self.context)[:, : self.config.dim].contiguous()

    def state(self) -> dict[str, Tensor]:
        """Return what `restore` needs to resume."""
        return {"word": self.word, "context": self.context, "word_squares": self.squares[0], "context_squares": self.squares[1]}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore a `state`."""
        for name, value in self.state().items():
            value.copy_(state[name])

    def _generator(self, epoch: int) -> torch.Generator:
        return torch.Generator().manual_seed((self._seed * 1_000_003 + epoch + 1) % 2**63)


def _gradient(rows: Tensor, others: Tensor, slope: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct rows of a batch, and for each the weighted sum of the rows of the other table that it met."""
    rows, order = rows.sort()
    distinct, counts = torch.unique_consecutive(rows, return_counts=True)
    starts = (counts.cumsum(0) - counts).to(others.dtype)
    sums = embedding_bag(others[order], table, starts, mode="sum", per_sample_weights=slope[order])
    return distinct.long(), sums


@dataclass(frozen=True)
class _Batch:
    """Pairs of a batch in both directions."""

    rows: Tensor
    columns: Tensor
    slope: Tensor
    """(pairs,): the gradient of the loss for the product of word and context."""
    loss: Tensor
    """The sum."""
