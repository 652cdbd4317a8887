"""GloVe (Pennington, Socher and Manning 2014): vectors whose products are the logarithms of co-occurrence counts.

    loss = sum over pairs with a count X:  1/2 f(X) (w . c + b + b' - log X)^2,   f(X) = min(1, (X / x_max)^alpha)

Each word has a vector w and, as somebody's neighbour, a vector c; the sum of both is the result, as published. Written here,
since no living library trains it: pairs come in shuffled batches instead of one by one, and a word's gradients in a batch are
summed before AdaGrad's step, which divides by the root of all squares so far. A bias is a column of its table beside a column
of ones in the other one, so that one product gives all three terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.progress import Advance, progress
from polyseme.base.run import Run
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.epochs import EpochCheckpoints, Fitted, encode_text, write_model
from polyseme.text.corpus import Corpus
from polyseme.text.counting.cooccurrence import Cooccurrences, count_cooccurrences, frequent_types, subsampling_probabilities
from polyseme.text.shards.shards import Shards
from polyseme.text.word_vectors import WordVectors

FIRST_SQUARE = 0.01  # where AdaGrad's sums start; from 1, rare words move for many epochs at a tenth of the pace
SAMPLE, LONG_TEXT = 1e-4, 1_000_000  # a share of the words, and words
BATCH_CPU, BATCH_CUDA = 4096, 65536  # pairs of a batch, each of which is trained both ways round


@dataclass(frozen=True, kw_only=True)
class GlovePretraining(Config):
    """What is taught, and how.

    >>> GlovePretraining(dim=50).window
    10
    """

    dim: int = 100
    """Size of a vector."""
    window: int = 10
    """Neighbours of a word are so far from it at most; those at distance d count 1/d."""
    min_count: int = 5
    """Words that come less often are left out."""
    vocabulary_size: int | None = None
    """The most frequent words, so many at most; None: all."""
    sample: float | None = None
    """Words with a larger share of the text are passed over at times before pairs are counted, as word2vec does; 0: never, as
    published; None: 0.0001, and 0 in a text of less than a million words, which has no words to spare."""
    epochs: int = 12
    """Passes over the pairs."""
    x_max: float = 10.0
    """Pairs that come more often than this weigh the same; published: 100, for billions of words."""
    alpha: float = 0.75
    """How fast the weight of rarer pairs falls."""
    learning_rate: float = 0.2
    """AdaGrad's."""
    batch_pairs: int | None = None
    """Pairs of a batch; None: 4,096, on a GPU 65,536."""

    def __post_init__(self) -> None:
        least = {"dim": 1, "window": 1, "min_count": 1, "epochs": 1}
        problems = [
            f"{name} is {getattr(self, name)}; it must be at least {low}"
            for name, low in least.items()
            if getattr(self, name) < low
        ]
        if self.sample is not None and not 0 <= self.sample < 1:
            problems.append(f"sample is {self.sample}; allowed: from 0 to below 1")
        for name in ("x_max", "alpha", "learning_rate"):
            if not getattr(self, name) > 0:
                problems.append(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("vocabulary_size", "batch_pairs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problems.append(f"{name} is {value}; it must be at least 1")
        if problems:
            raise ConfigError("; ".join(problems))

    def fit(self, corpus: Corpus, run: Run, out: str | Path) -> Fitted:
        """Count the pairs of a corpus and train on them; `out` holds the model at the end, `out/run` what a restart needs."""
        out = Path(out)
        shards = encode_text(corpus, run, out)
        pairs, words = _pairs(shards, self, run.seed)
        model = Glove(pairs, self, run)
        epochs = EpochCheckpoints(out / "run", {"glove": self.to_dict(), "corpus": shards.fingerprint, "seed": run.seed})
        found = epochs.newest()
        done, loss = 0, None
        if found is not None:
            model.restore(found.tensors)
            done, loss = found.step, float(found.values["loss"])
        with progress("training", (self.epochs - done) * len(pairs), "pairs") as advance:
            for epoch in range(done, self.epochs):
                loss = model.epoch(epoch, advance)
                epochs.keep(epoch + 1, model.state(), {"loss": loss})
        table = WordVectorTable.from_vectors(
            WordVectors(words, model.vectors().cpu().numpy(), len(words)), splitter=corpus.splitter
        )
        fitted = Fitted(table, out, self.epochs, len(words), shards.total, epochs.seconds, loss)
        return write_model(fitted, corpus, shards, run, {"method": "glove", "pairs": len(pairs), **self.to_dict()})


def _pairs(shards: Shards, config: GlovePretraining, seed: int) -> tuple[Cooccurrences, list[str]]:
    places = frequent_types(shards, config.min_count, config.vocabulary_size)
    if not len(places):
        raise PolysemeError(f"no word of the text comes {config.min_count} times or more: give a smaller --min-count")
    sample = (SAMPLE if shards.total >= LONG_TEXT else 0.0) if config.sample is None else config.sample
    kept = subsampling_probabilities(np.asarray(shards.counts)[places], sample) if sample else None
    with progress("counting pairs", shards.total, "words") as advance:
        pairs = count_cooccurrences(shards, places, config.window, advance, kept=kept, seed=seed)
    if not len(pairs):
        less = ", or a larger --sample" if sample else ""
        raise PolysemeError(f"no two known words stand near each other: give more text, or a smaller --min-count{less}")
    types = shards.most_frequent(int(places.max()) + 1)
    return pairs, [types[place] for place in places.tolist()]


class Glove:
    """Both tables of vectors, with AdaGrad's sums, and the pairs that they learn from."""

    def __init__(self, pairs: Cooccurrences, config: GlovePretraining, run: Run) -> None:
        self.config, self._seed, self._device = config, run.seed, run.device
        self.first, self.second, counts = (
            torch.from_numpy(array).to(run.device) for array in (pairs.first, pairs.second, pairs.counts)
        )
        self.logs = counts.log()
        self.weights = (counts / config.x_max).pow(config.alpha).clamp(max=1)
        drawn = (torch.rand(2, pairs.size, config.dim + 2, generator=self._generator(-1)) - 0.5) / config.dim
        self.word, self.context = drawn.to(run.device).unbind()  # (words, dim + 2): vector, bias, ones; vector, ones, bias
        self.word[:, -1] = self.context[:, -2] = 1
        self.squares = [torch.full_like(table, FIRST_SQUARE) for table in (self.word, self.context)]

    def loss(self) -> float:
        """The mean over all pairs, both ways round, as the tables are now."""
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        places = torch.arange(len(self.logs), device=self._device)
        for some in places.split(BATCH_CUDA):
            total += self._batch(some).loss
        return float(total) / self.ways

    @property
    def ways(self) -> int:
        """Pairs counted both ways round; a word beside itself has one."""
        return 2 * len(self.logs) - int((self.first == self.second).sum())

    def epoch(self, number: int, advance: Advance | None = None) -> float:
        """One pass over the pairs in an order that the seed and the epoch decide; the mean loss on the way."""
        order = torch.randperm(len(self.logs), generator=self._generator(number)).to(self._device)
        size = self.config.batch_pairs or (BATCH_CUDA if self._device.type == "cuda" else BATCH_CPU)
        total = torch.zeros((), dtype=torch.float64, device=self._device)
        for some in order.split(size):
            batch = self._batch(some)
            total += batch.loss
            self._step(batch)
            if advance is not None:
                advance(len(some))
        mean = float(total) / self.ways
        if not mean < float("inf"):
            raise PolysemeError(f"the loss is {mean} after epoch {number + 1}: give a smaller --learning-rate")
        return mean

    def _batch(self, some: Tensor) -> _Batch:
        """Pairs both ways round, and what the loss says of each."""
        one, two = self.first[some], self.second[some]
        turned = (one != two).nonzero()[:, 0]
        rows, columns = torch.cat([one, two[turned]]), torch.cat([two, one[turned]])
        logs, weights = (torch.cat([all_of[some], all_of[some[turned]]]) for all_of in (self.logs, self.weights))
        products = torch.einsum("nd,nd->n", self.word.index_select(0, rows), self.context.index_select(0, columns))
        slope = weights * (products - logs)  # (pairs,)
        return _Batch(rows, columns, slope, 0.5 * (slope * (products - logs)).sum(dtype=torch.float64))

    def _step(self, batch: _Batch) -> None:
        """AdaGrad; the columns of ones stay."""
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
        """The result, (words, dim)."""
        return (self.word + self.context)[:, : self.config.dim].contiguous()

    def state(self) -> dict[str, Tensor]:
        """What `restore` needs to go on."""
        return {"word": self.word, "context": self.context, "word_squares": self.squares[0], "context_squares": self.squares[1]}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Put back what `state` gave."""
        for name, value in self.state().items():
            value.copy_(state[name])

    def _generator(self, epoch: int) -> torch.Generator:
        return torch.Generator().manual_seed((self._seed * 1_000_003 + epoch + 1) % 2**63)


def _gradient(rows: Tensor, others: Tensor, slope: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows of a batch, and for each the sum of the other table's rows that it met, by their slopes."""
    rows, order = rows.sort()
    distinct, counts = torch.unique_consecutive(rows, return_counts=True)
    starts = (counts.cumsum(0) - counts).to(others.dtype)
    sums = embedding_bag(others[order], table, starts, mode="sum", per_sample_weights=slope[order])
    return distinct.long(), sums


@dataclass(frozen=True)
class _Batch:
    """Pairs of a batch, both ways round."""

    rows: Tensor
    columns: Tensor
    slope: Tensor
    """(pairs,): the loss by the product of word and context."""
    loss: Tensor
    """The sum."""
