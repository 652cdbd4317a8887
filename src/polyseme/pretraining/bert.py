"""From a corpus to a BERT (Devlin et al. 2019): masked subwords, and whether a text follows another.

The network is the transformers library's `BertForPreTraining`; pairs and masks (`bert_batches`) and the training loop are
ours. The subwords are WordPiece, trained on the same text. `polyseme.load` and `AutoModel.from_pretrained` load the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.bert import Bert
from polyseme.encoders.config import SubwordConfig
from polyseme.encoders.subword_library import library, quiet
from polyseme.nn.to_device import to_device
from polyseme.pretraining.bert_batches import BertBatch, BertBatches
from polyseme.pretraining.document_batches import IGNORED
from polyseme.pretraining.objective import Objective
from polyseme.pretraining.subword_config import SIZES, BertPretraining
from polyseme.pretraining.subword_job import SubwordJob
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer, train_wordpiece
from polyseme.training.base import Loss


@dataclass(frozen=True)
class _Prepared:
    """A batch on the device."""

    inputs: dict[str, Tensor]
    positions: Tensor
    """(predicted,): positions of the subwords to predict in the flat batch."""
    targets: Tensor
    """(predicted,): these subwords."""
    unrelated: Tensor
    """(batch,): 1 where the second text is from elsewhere, as in transformers."""
    words: int


class BertObjective(Objective):
    """Masked subwords and next sentences, by the library's heads for both."""

    def prepare(self, batch: BertBatch) -> _Prepared:
        device = self.model.device
        flat = batch.targets.reshape(-1)
        predicted = np.flatnonzero(flat != IGNORED)
        named = {"input_ids": batch.ids, "token_type_ids": batch.segments, "attention_mask": batch.attention}
        inputs = {name: to_device(torch.from_numpy(value), device) for name, value in named.items()}
        positions, targets, unrelated = (
            to_device(torch.from_numpy(value), device)
            for value in (predicted, flat[predicted], (~batch.related).astype(np.int64))
        )
        return _Prepared(inputs, positions, targets, unrelated, batch.words)

    def scores(self, batch: _Prepared) -> tuple[Tensor, Tensor]:
        """Return the scores of the subwords to predict, (predicted, subwords), and of the pairs, (batch, 2)."""
        network = self.model.network
        output = network.base_model(**batch.inputs)
        states = output.last_hidden_state.flatten(0, 1).index_select(0, batch.positions)  # only these need the large product
        return network.cls.predictions(states).float(), network.cls.seq_relationship(output.pooler_output).float()

    def loss(self, batch: _Prepared) -> Loss:
        subwords, pairs = self.scores(batch)
        masked = F.cross_entropy(subwords, batch.targets, reduction="sum") / max(len(batch.targets), 1)
        following = F.cross_entropy(pairs, batch.unrelated)
        return Loss(masked + following, max(batch.words, 1), {"masked": masked, "next": following})

    def evaluate(self, dev: Iterable[BertBatch]) -> dict[str, float]:
        """Return the loss, the perplexity of masked subwords, and the accuracy of next sentences."""
        sums, predicted, pairs = np.zeros(3), 0, 0
        for batch in map(self.prepare, dev):
            scores, related = self.scores(batch)
            sums[0] += F.cross_entropy(scores, batch.targets, reduction="sum").item()
            sums[1] += F.cross_entropy(related, batch.unrelated, reduction="sum").item()
            sums[2] += int((related.argmax(1) == batch.unrelated).sum())
            predicted, pairs = predicted + len(batch.targets), pairs + len(batch.unrelated)
        if not pairs:
            raise PolysemeError("the held-out text (the last lines) is too short for a pair of texts: add text")
        masked, following = sums[0] / max(predicted, 1), sums[1] / pairs
        return {
            "loss": masked + following,
            "masked_perplexity": float(np.exp(masked)),
            "next_accuracy": sums[2] / pairs,
        }


class BertJob(SubwordJob):
    """The training of a new BERT."""

    method: BertPretraining

    def train_tokenizer(self, sentences: Iterable[Sequence[str]]) -> Any:
        return train_wordpiece(sentences, self.method.vocabulary_size, lowercase=not self.method.cased)

    def tokenizer_settings(self) -> dict[str, Any]:
        return {"wordpiece": self.method.vocabulary_size, "lowercase": not self.method.cased}

    def build(self, shards: SubwordShards) -> Bert:
        layers, width = SIZES[self.method.size]
        with quiet():
            config = library().BertConfig(
                vocab_size=len(self.tokenizer),
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=width // 64,
                intermediate_size=4 * width,
                max_position_embeddings=self.method.max_length,
                hidden_dropout_prob=self.method.dropout,
                attention_probs_dropout_prob=self.method.dropout,
                pad_token_id=self.tokenizer.pad_token_id,
            )
            network = library().BertForPreTraining(config)
        return Bert(SubwordConfig(), network=network, tokenizer=self.tokenizer, splitter=self.corpus.splitter)

    def training_data(self, model: Bert, shards: SubwordShards, train: range) -> tuple[BertObjective, BertBatches]:
        return BertObjective(model), self._batches(shards, train, self.run)

    def validation_data(self, shards: SubwordShards, held_out: range) -> list[BertBatch]:
        return self._batches(shards, held_out, None).once()

    def _batches(self, shards: SubwordShards, documents: range, run: Run | None) -> BertBatches:
        method, tokenizer = self.method, SubwordTokenizer(self.tokenizer)
        assert method.batch_subwords is not None
        return BertBatches(
            shards,
            documents,
            tokenizer,
            masking=method.masking,
            max_length=method.max_length,
            batch_subwords=method.batch_subwords,
            run=run,
        )
