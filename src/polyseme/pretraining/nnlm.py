"""From a corpus to a neural probabilistic language model (Bengio et al. 2003): each word from the few before it.

The original used plain gradient descent without dropout, and stopped early; this uses AdamW, and dropout on the word vectors
and on the tanh layer, which matters more for 930,000 words than the number of units. A batch is some sentences, shuffled in
each epoch; each position of a sentence is an example.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor, nn

from polyseme.encoders.nnlm import Nnlm
from polyseme.pretraining.elmo_job import validation_data
from polyseme.pretraining.job import shuffling
from polyseme.pretraining.left_to_right import LeftToRightJob, LeftToRightObjective
from polyseme.pretraining.ngram_counts import BEGIN
from polyseme.pretraining.nnlm_config import NnlmPretraining
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.base import Loss


@dataclass(frozen=True)
class Windows:
    """The examples of a batch, on the model's device."""

    contexts: Tensor
    """(n, order - 1): ids of the words before, the nearest last."""
    targets: Tensor
    """(n,): ids of the words to predict."""
    words: int
    """Words of the text among them, without special tokens."""


class NnlmObjective(LeftToRightObjective):
    """The language model's loss."""

    model: Nnlm

    def __init__(self, model: Nnlm, ids: TypeIds, *, dropout: float = 0.0, negatives: int | None = None) -> None:
        super().__init__(model, ids, negatives=negatives)
        model.dropout = dropout

    def prepare(self, batch: TypeBatch) -> Windows:
        """Turn sentences into contexts and targets."""
        positions = np.arange(batch.types.shape[1])
        ids = self.word_ids(batch.types, ends=positions > batch.lengths[:, None])
        ids[:, 0] = BEGIN
        before = self.model.config.order - 1
        marked = np.pad(ids, ((0, 0), (before - 1, 0)), constant_values=BEGIN)
        contexts = sliding_window_view(marked[:, :-1], before, axis=1)  # (batch, words + 1, order - 1)
        inside = positions[:-1] <= batch.lengths[:, None]  # a sentence of n words has n + 1 predictions
        return Windows(self.move(contexts[inside]), self.move(ids[:, 1:][inside]), batch.words)

    def loss(self, batch: Windows) -> Loss:
        """Return the mean loss of a prediction."""
        return self.mean_loss(self.model.read(batch.contexts), batch.targets, batch.words)

    def predictions(self, batch: TypeBatch) -> tuple[Tensor, Tensor]:
        windows = self.prepare(batch)
        return self.model.read(windows.contexts), windows.targets


class NnlmJob(LeftToRightJob):
    """The training of a new model."""

    method: NnlmPretraining

    def new_model(self, vocabulary: Vocabulary) -> Nnlm:
        model = Nnlm(self.method.encoder_config(len(vocabulary)), vocabulary=vocabulary, splitter=self.corpus.splitter)
        nn.init.normal_(model.table.weight, std=0.1)  # Adam would take long to forget the default of 1
        return model

    def training_data(self, model: Nnlm, shards: Shards, train: range) -> tuple[NnlmObjective, SentenceBatches]:
        assert self.method.batch_words is not None
        objective = NnlmObjective(model, self.ids, dropout=self.method.dropout, negatives=self.method.negatives)
        return objective, SentenceBatches(shards, train, batch_words=self.method.batch_words, **shuffling(self.run))

    def validation_data(self, shards: Shards, held_out: range) -> list[TypeBatch]:
        return validation_data(shards, held_out)
