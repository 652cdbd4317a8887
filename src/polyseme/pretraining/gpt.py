"""From a corpus to a GPT (Radford et al. 2018, 2019): each subword from all before it.

The network is the transformers library's `GPT2LMHeadModel`; the subwords are byte pairs, trained on the same text. Documents
follow each other in shuffled order with `<|endoftext|>` before each, as published, and are cut into rows of one length; a row
may begin anywhere. `polyseme.load` and `AutoModel.from_pretrained` load the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.run import Run
from polyseme.encoders.gpt import Gpt
from polyseme.encoders.subword_library import library, quiet
from polyseme.nn.to_device import to_device
from polyseme.pretraining.document_batches import BLOCK, IGNORED, DocumentBatches
from polyseme.pretraining.objective import Objective
from polyseme.pretraining.subword_config import SIZES, GptPretraining
from polyseme.pretraining.subword_job import SubwordJob
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer, train_bpe
from polyseme.training.base import Loss


@dataclass(frozen=True)
class GptBatch:
    """Rows of subwords, (batch, length) each."""

    ids: NDArray[np.int64]
    """What is read."""
    targets: NDArray[np.int64]
    """The next subwords; IGNORED after the end."""
    words: int
    """Words and ends to predict."""


@dataclass(frozen=True)
class Plan:
    """A batch before it is made."""

    ids: NDArray[np.int64]
    """(all rows, length + 1)."""
    starts: NDArray[np.bool_]
    """Where words begin."""
    rows: NDArray[np.int64]
    """Which rows."""


class GptBatches(DocumentBatches):
    """Batches of rows; `separator` is the token between documents."""

    def __init__(
        self,
        shards: SubwordShards,
        documents: range,
        separator: int,
        *,
        max_length: int,
        batch_size: int,
        run: Run | None = None,
    ) -> None:
        super().__init__(shards, documents, run)
        self._separator, self._length, self._batch_size = separator, max_length, batch_size
        self._words = shards.words(documents) + len(documents)

    @property
    def words_per_epoch(self) -> int:
        """Words of the text, and an end for each document."""
        return self._words

    def shuffled(self, epoch: int, block: int) -> list[Plan]:
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._documents)) + self._documents.start
        ids, starts = self.rows(order[block * BLOCK : (block + 1) * BLOCK])
        mixed = np.random.default_rng([self._seed, epoch, block]).permutation(len(ids))
        chosen = (mixed[begin : begin + self._batch_size] for begin in range(0, len(mixed), self._batch_size))
        return [Plan(ids, starts, rows) for rows in chosen]

    def rows(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Concatenate documents, with a separator before each and after the last, and cut them into rows, (rows, length + 1).

        The last subword of a row is the first of the next. Return the rows, and where words begin in them.
        """
        subwords, starts = [], []
        for number in documents.tolist():
            positions = self._shards.document(number)
            ids, begins = self._shards.subwords(int(positions[0]), int(positions[-1]))
            subwords += [[self._separator], ids]
            starts += [[True], begins]
        text, first = np.concatenate([*subwords, [self._separator]]), np.concatenate([*starts, [True]])
        count = -(-(len(text) - 1) // self._length)
        padded = np.full(count * self._length + 1, IGNORED, dtype=np.int64)
        heads = np.zeros(len(padded), dtype=bool)
        padded[: len(text)], heads[: len(text)] = text, first
        index = np.arange(count)[:, None] * self._length + np.arange(self._length + 1)
        return padded[index], heads[index]

    def gather(self, plan: Plan) -> GptBatch:
        rows = plan.ids[plan.rows]
        ids = np.where(rows[:, :-1] == IGNORED, self._separator, rows[:, :-1])
        return GptBatch(ids, rows[:, 1:], int(plan.starts[plan.rows, 1:].sum()))

    def once(self) -> list[GptBatch]:
        ids, starts = self.rows(np.arange(self._documents.start, self._documents.stop))
        chosen = np.split(np.arange(len(ids)), range(self._batch_size, len(ids), self._batch_size))
        return [self.gather(Plan(ids, starts, rows)) for rows in chosen]


@dataclass(frozen=True)
class _Prepared:
    """A batch on the device."""

    ids: Tensor
    targets: Tensor
    words: int


class GptObjective(Objective):
    """The next subword, by the library's head."""

    def prepare(self, batch: GptBatch) -> _Prepared:
        ids, targets = (to_device(torch.from_numpy(array), self.model.device) for array in (batch.ids, batch.targets))
        return _Prepared(ids, targets, batch.words)

    def total(self, batch: _Prepared) -> Tensor:
        """Return the sum of the losses."""
        scores = self.model.network(input_ids=batch.ids, use_cache=False).logits
        return F.cross_entropy(scores.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    def loss(self, batch: _Prepared) -> Loss:
        """Return the mean loss of a subword."""
        mean = self.total(batch) / (batch.targets != IGNORED).sum()
        return Loss(mean, max(batch.words, 1), {"next": mean})

    def evaluate(self, dev: Iterable[GptBatch]) -> dict[str, float]:
        """Return the loss of a subword, and the perplexities of subwords and of words and ends."""
        total, subwords, words = 0.0, 0, 0
        for batch in map(self.prepare, dev):
            total += self.total(batch).item()
            subwords, words = subwords + int((batch.targets != IGNORED).sum()), words + batch.words
        loss = total / max(subwords, 1)
        each = total / max(words, 1)
        return {"loss": loss, "piece_perplexity": float(np.exp(loss)), "word_perplexity": float(np.exp(each))}


class GptJob(SubwordJob):
    """The training of a new GPT."""

    method: GptPretraining

    def train_tokenizer(self, sentences: Iterable[Sequence[str]]) -> Any:
        return train_bpe(sentences, self.method.vocabulary_size)

    def tokenizer_settings(self) -> dict[str, Any]:
        return {"byte_pairs": self.method.vocabulary_size}

    def build(self, shards: SubwordShards) -> Gpt:
        layers, width = SIZES[self.method.size]
        end, dropout = self.tokenizer.eos_token_id, self.method.dropout
        with quiet():
            config = library().GPT2Config(
                vocab_size=len(self.tokenizer),
                n_embd=width,
                n_layer=layers,
                n_head=width // 64,
                n_positions=self.method.max_length,
                embd_pdrop=dropout,
                attn_pdrop=dropout,
                resid_pdrop=dropout,
                bos_token_id=end,
                eos_token_id=end,
            )
            network = library().GPT2LMHeadModel(config)
        return Gpt(Gpt.default_config(), network=network, tokenizer=self.tokenizer, splitter=self.corpus.splitter)

    def training_data(self, model: Gpt, shards: SubwordShards, train: range) -> tuple[GptObjective, GptBatches]:
        return GptObjective(model), self._batches(shards, train, self.run)

    def validation_data(self, shards: SubwordShards, held_out: range) -> list[GptBatch]:
        return self._batches(shards, held_out, None).once()

    def _batches(self, shards: SubwordShards, documents: range, run: Run | None) -> GptBatches:
        length, separator = self.method.max_length, SubwordTokenizer(self.tokenizer).special_token_id("eos", "bos")
        batch_size = max(1, (self.method.batch_subwords or 0) // length)
        return GptBatches(shards, documents, separator, max_length=length, batch_size=batch_size, run=run)
