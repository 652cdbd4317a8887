"""Teach a feed-forward language model (Bengio et al. 2003): each word from the few before it.

The original went through its text by plain gradient descent, without dropout, and stopped early; here are AdamW and dropout on
the words' vectors and on the tanh layer, which 930,000 words need more than they need the units. A batch is some whole
sentences, shuffled anew each epoch; the places of each are its examples.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.run import Run
from polyseme.encoders.config import NnlmConfig
from polyseme.encoders.nnlm import Nnlm
from polyseme.pretraining.elmo_training import validation
from polyseme.pretraining.left_to_right import Ids, LeftToRightObjective, LeftToRightPretraining
from polyseme.pretraining.ngram_counts import BEGIN
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter
from polyseme.training.base import Loss
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig


@dataclass(frozen=True)
class Windows:
    """The examples of a batch, on the model's device."""

    contexts: Tensor
    """(n, order - 1): rows of the words before, the nearest last."""
    targets: Tensor
    """(n,): rows of the words to predict."""
    words: int
    """Words of the text among them, marks not counted."""


class NnlmObjective(LeftToRightObjective):
    """The feed-forward language model under the loop."""

    model: Nnlm

    def __init__(self, model: Nnlm, ids: Ids, *, dropout: float = 0.0, negatives: int | None = None) -> None:
        super().__init__(model, ids, negatives=negatives)
        model.dropout = dropout

    def prepare(self, batch: TypeBatch) -> Windows:
        """Sentences -> contexts and targets."""
        places = np.arange(batch.types.shape[1])
        rows = self.rows(batch.types, ends=places > batch.lengths[:, None])
        rows[:, 0] = BEGIN
        before = self.model.config.order - 1
        marked = np.pad(rows, ((0, 0), (before - 1, 0)), constant_values=BEGIN)
        contexts = sliding_window_view(marked[:, :-1], before, axis=1)  # (batch, words + 1, order - 1)
        inside = places[:-1] <= batch.lengths[:, None]  # a sentence of n words has n + 1 predictions
        return Windows(self.move(contexts[inside]), self.move(rows[:, 1:][inside]), batch.words)

    def loss(self, batch: Windows) -> Loss:
        """The mean loss of a prediction."""
        return self.mean_loss(self.model.read(batch.contexts), batch.targets, batch.words)

    def predictions(self, batch: TypeBatch) -> tuple[Tensor, Tensor]:
        windows = self.prepare(batch)
        return self.model.read(windows.contexts), windows.targets


@dataclass(frozen=True, kw_only=True)
class NnlmPretraining(LeftToRightPretraining):
    """What is taught, and how."""

    order: int = 5
    """Words of an n-gram: a word depends on one less."""
    dim: int = 100
    """Size of a word's vector."""
    hidden_size: int = 500
    """Units of the tanh layer."""
    direct_connections: bool = False
    """Connect the words' vectors with the output directly, too."""
    dropout: float = 0.25
    """On the words' vectors and on the tanh layer."""
    batch_words: int | None = None
    """Words and marks of a batch, padding counted; None: 1,024, and less for little text."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0, optim=OptimConfig()))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        problems = self.problems("dropout")
        if self.batch_words is not None and self.batch_words < 1:
            problems.append(f"batch_words is {self.batch_words}; it must be at least 1")
        try:
            self._model(1)
        except ConfigError as error:
            problems.append(str(error))
        if problems:
            raise ConfigError("; ".join(problems))

    def _model(self, words: int) -> NnlmConfig:
        return NnlmConfig(size=words, order=self.order, dim=self.dim, hidden_size=self.hidden, direct_connections=self.direct)

    def resolve_defaults(self, words: int, run: Run) -> NnlmPretraining:
        return self.replace(batch_words=self.batch_words or min(1024, max(128, words // 100)))

    def build(self, vocabulary: Vocabulary, splitter: Splitter) -> Nnlm:
        model = Nnlm(self._model(len(vocabulary)), vocabulary=vocabulary, splitter=splitter)
        nn.init.normal_(model.table.weight, std=0.1)  # a table's usual 1.0 would take Adam long to forget
        return model

    def learner(self, model: Nnlm, ids: Ids) -> NnlmObjective:
        return NnlmObjective(model, ids, dropout=self.dropout, negatives=self.negatives)

    def batches(self, shards: Shards, sentences: range, run: Run) -> SentenceBatches:
        assert self.batch_words is not None
        share = {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
        return SentenceBatches(shards, sentences, batch_words=self.batch_words, **share)

    def validation(self, shards: Shards, held_out: range) -> list[TypeBatch]:
        return validation(shards, held_out)
