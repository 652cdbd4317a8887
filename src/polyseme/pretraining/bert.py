"""Teach a BERT (Devlin et al. 2019) to tell hidden pieces, and whether a text follows another: from a corpus to a model.

The network is the transformers library's `BertForPreTraining`, with its three summed embeddings (pieces, positions, first or
second text); pairs and masks are ours (`bert_batches`), and so is the loop. Subwords are WordPiece, learned from the same text.
The result opens with `polyseme.load` and with `AutoModel.from_pretrained`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from polyseme.pretraining.bert_batches import IGNORED, BertBatch, BertBatches, MaskingConfig
from polyseme.pretraining.subword_training import SIZES, SubwordObjective, SubwordPretraining
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer, train_wordpiece
from polyseme.text.words import Splitter
from polyseme.training.base import Loss


@dataclass(frozen=True, kw_only=True)
class BertPretraining(SubwordPretraining):
    """What is taught, and how; `fit` does it.

    >>> BertPretraining(size="mini").masking.mlm_probability
    0.15
    """

    lowercase: bool = True
    """Capitals and accents are not told apart."""
    masking: MaskingConfig = field(default_factory=MaskingConfig)
    """Which pieces are hidden."""

    def learn(self, sentences: Iterable[Sequence[str]]) -> Any:
        return train_wordpiece(sentences, self.vocabulary_size, lowercase=self.lowercase)

    def tokenizer_settings(self) -> dict[str, Any]:
        return {"wordpiece": self.vocabulary_size, "lowercase": self.lowercase}

    def build(self, tokenizer: Any, splitter: Splitter) -> Bert:
        layers, width = SIZES[self.size]
        with quiet():
            sizes = library().BertConfig(
                vocab_size=len(tokenizer),
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=width // 64,
                intermediate_size=4 * width,
                max_position_embeddings=self.max_length,
                hidden_dropout_prob=self.dropout,
                attention_probs_dropout_prob=self.dropout,
                pad_token_id=tokenizer.pad_token_id,
            )
            network = library().BertForPreTraining(sizes)
        return Bert(SubwordConfig(), network=network, tokenizer=tokenizer, splitter=splitter)

    def objective(self, model: Bert) -> BertObjective:
        return BertObjective(model)

    def batches(
        self, shards: SubwordShards, documents: range, pieces: SubwordTokenizer, size: int, run: Run | None
    ) -> BertBatches:
        share = {} if run is None else {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
        return BertBatches(shards, documents, pieces, masking=self.masking, length=self.max_length, size=size, **share)


@dataclass(frozen=True)
class _Prepared:
    """A batch on the device."""

    inputs: dict[str, Tensor]
    places: Tensor
    """(told,): the pieces that are to be told, in the flat batch."""
    wanted: Tensor
    """(told,)."""
    unrelated: Tensor
    """(batch,): 1 where the second text is from elsewhere, as the library counts."""
    words: int


class BertObjective(SubwordObjective):
    """Hidden pieces and next sentences, around a model with the library's heads for both."""

    def prepare(self, batch: BertBatch) -> _Prepared:
        device = self.model.device
        flat = batch.targets.reshape(-1)
        told = np.flatnonzero(flat != IGNORED)
        named = {"input_ids": batch.ids, "token_type_ids": batch.segments, "attention_mask": batch.attention}
        inputs = {name: to_device(torch.from_numpy(value), device) for name, value in named.items()}
        places, wanted, unrelated = (
            to_device(torch.from_numpy(value), device) for value in (told, flat[told], (~batch.related).astype(np.int64))
        )
        return _Prepared(inputs, places, wanted, unrelated, batch.words)

    def scores(self, batch: _Prepared) -> tuple[Tensor, Tensor]:
        """For the pieces that are to be told (told, pieces), and for the pairs (batch, 2)."""
        network = self.model.network
        found = network.base_model(**batch.inputs)
        states = found.last_hidden_state.flatten(0, 1).index_select(0, batch.places)  # only these need the large product
        return network.cls.predictions(states).float(), network.cls.seq_relationship(found.pooler_output).float()

    def loss(self, batch: _Prepared) -> Loss:
        pieces, pairs = self.scores(batch)
        masked = F.cross_entropy(pieces, batch.wanted, reduction="sum") / max(len(batch.wanted), 1)
        following = F.cross_entropy(pairs, batch.unrelated)
        return Loss(masked + following, max(batch.words, 1), {"masked": masked, "next": following})

    def evaluate(self, dev: Iterable[BertBatch]) -> dict[str, float]:
        """The loss, the perplexity of hidden pieces, and how many pairs are told right."""
        sums, told, pairs = np.zeros(3), 0, 0
        for batch in map(self.prepare, dev):
            scores, related = self.scores(batch)
            sums[0] += F.cross_entropy(scores, batch.wanted, reduction="sum").item()
            sums[1] += F.cross_entropy(related, batch.unrelated, reduction="sum").item()
            sums[2] += int((related.argmax(1) == batch.unrelated).sum())
            told, pairs = told + len(batch.wanted), pairs + len(batch.unrelated)
        if not pairs:
            raise PolysemeError("the held-out text (the last lines) is too short for a pair of texts: add text")
        masked, following = sums[0] / max(told, 1), sums[1] / pairs
        return {
            "loss": masked + following,
            "masked_perplexity": float(np.exp(masked)),
            "next_accuracy": sums[2] / pairs,
        }
