"""Teach a GPT (Radford et al. 2018, 2019) to tell the next piece: from a corpus to a model folder.

The network is the transformers library's `GPT2LMHeadModel`; pieces are byte pairs, learned from the same text. Documents follow
each other in shuffled order with `<|endoftext|>` before each, as published, and are cut into rows of one length; a row may
begin anywhere. All of it follows from the seed, the epoch and the place, so that a run can be taken up anywhere. The result
opens with `polyseme.load` and with `AutoModel.from_pretrained`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from polyseme.pretraining.subword_training import SIZES, SubwordObjective, SubwordPretraining
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import MIN_BPE_SIZE, SubwordTokenizer, train_bpe
from polyseme.text.words import Splitter
from polyseme.training.base import Loss

BLOCK = 2048  # documents that are cut into rows together
IGNORED = -100  # the target behind the end of the last row


@dataclass(frozen=True, kw_only=True)
class GptPretraining(SubwordPretraining):
    """What is taught, and how; `fit` does it."""

    least, always = MIN_BPE_SIZE, "256 are bytes and one is a mark"

    def learn(self, sentences: Iterable[Sequence[str]]) -> Any:
        return train_bpe(sentences, self.vocabulary_size)

    def tokenizer_settings(self) -> dict[str, Any]:
        return {"byte_pairs": self.vocabulary_size}

    def build(self, tokenizer: Any, splitter: Splitter) -> Gpt:
        layers, width = SIZES[self.size]
        mark = tokenizer.eos_token_id
        with quiet():
            sizes = library().GPT2Config(
                vocab_size=len(tokenizer),
                n_embd=width,
                n_layer=layers,
                n_head=width // 64,
                n_positions=self.max_length,
                embd_pdrop=self.dropout,
                attn_pdrop=self.dropout,
                resid_pdrop=self.dropout,
                bos_token_id=mark,
                eos_token_id=mark,
            )
            network = library().GPT2LMHeadModel(sizes)
        return Gpt(Gpt.default_config(), network=network, tokenizer=tokenizer, splitter=splitter)

    def objective(self, model: Gpt) -> GptObjective:
        return GptObjective(model)

    def batches(
        self, shards: SubwordShards, documents: range, pieces: SubwordTokenizer, size: int, run: Run | None
    ) -> GptBatches:
        share = {} if run is None else {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
        mark = pieces.special_token_id("eos", "bos")
        return GptBatches(shards, documents, mark, length=self.max_length, rows=max(1, size // self.max_length), **share)


@dataclass(frozen=True)
class GptBatch:
    """Rows of pieces, (batch, length) each."""

    ids: NDArray[np.int64]
    """What is read."""
    targets: NDArray[np.int64]
    """The next pieces; IGNORED behind the end."""
    words: int
    """Words and ends that are to be told."""


class GptBatches:
    """An endless stream of rows over some documents; each of `world_size` processes gets its own share."""

    def __init__(
        self,
        shards: SubwordShards,
        documents: range,
        mark: int,
        *,
        length: int,
        rows: int,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._shards, self._documents, self._mark, self._length, self._rows = shards, documents, mark, length, rows
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self._words = shards.words(documents) + len(documents)
        self._epoch = self._block = self._batch = 0

    @property
    def words_per_epoch(self) -> int:
        """Words of the text, and an end for each document."""
        return self._words

    def position(self) -> dict[str, Any]:
        """Where the next batch stands."""
        return {"epoch": self._epoch, "block": self._block, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        self._epoch, self._block, self._batch = (position[name] for name in ("epoch", "block", "batch"))

    def __iter__(self) -> Iterator[GptBatch]:
        while True:
            order = np.random.default_rng([self._seed, self._epoch]).permutation(len(self._documents)) + self._documents.start
            while self._block * BLOCK < len(order):
                rows, begins = self.rows(order[self._block * BLOCK : (self._block + 1) * BLOCK])
                mixed = np.random.default_rng([self._seed, self._epoch, self._block]).permutation(len(rows))
                some = [mixed[at : at + self._rows] for at in range(0, len(mixed), self._rows)]
                some = [some[place % len(some)] for place in range(-(-len(some) // self._world_size) * self._world_size)]
                mine = some[self._rank :: self._world_size]  # every process takes as many steps
                while self._batch < len(mine):
                    self._batch += 1  # the position is that of the batch after the one given
                    yield self._gather(rows, begins, mine[self._batch - 1])
                self._block, self._batch = self._block + 1, 0
            self._epoch, self._block = self._epoch + 1, 0

    def rows(self, documents: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Documents end to end, with a mark before each and after the last, as rows of length + 1 (rows, length + 1), of which
        the last piece of one is the first of the next; and where a word begins."""
        pieces, begins = [], []
        for number in documents.tolist():
            places = self._shards.document(number)
            ids, starts = self._shards.subwords(int(places[0]), int(places[-1]))
            pieces += [[self._mark], ids]
            begins += [[True], starts]
        whole, first = np.concatenate([*pieces, [self._mark]]), np.concatenate([*begins, [True]])
        count = -(-(len(whole) - 1) // self._length)
        out = np.full(count * self._length + 1, IGNORED, dtype=np.int64)
        heads = np.zeros(len(out), dtype=bool)
        out[: len(whole)], heads[: len(whole)] = whole, first
        index = np.arange(count)[:, None] * self._length + np.arange(self._length + 1)
        return out[index], heads[index]

    def _gather(self, rows: NDArray[np.int64], begins: NDArray[np.bool_], places: NDArray[np.int64]) -> GptBatch:
        some = rows[places]
        ids = np.where(some[:, :-1] == IGNORED, self._mark, some[:, :-1])
        return GptBatch(ids, some[:, 1:], int(begins[places, 1:].sum()))

    def once(self) -> list[GptBatch]:
        """All documents once, in their order: for evaluation."""
        rows, begins = self.rows(np.arange(self._documents.start, self._documents.stop))
        return [
            self._gather(rows, begins, places)
            for places in np.split(np.arange(len(rows)), range(self._rows, len(rows), self._rows))
        ]


@dataclass(frozen=True)
class _Prepared:
    """A batch on the device."""

    ids: Tensor
    targets: Tensor
    words: int


class GptObjective(SubwordObjective):
    """The next piece, around a model with the library's head for it."""

    def prepare(self, batch: GptBatch) -> _Prepared:
        ids, targets = (to_device(torch.from_numpy(array), self.model.device) for array in (batch.ids, batch.targets))
        return _Prepared(ids, targets, batch.words)

    def total(self, batch: _Prepared) -> Tensor:
        """The sum of the losses."""
        scores = self.model.network(input_ids=batch.ids, use_cache=False).logits
        return F.cross_entropy(scores.flatten(0, 1).float(), batch.targets.flatten(), ignore_index=IGNORED, reduction="sum")

    def loss(self, batch: _Prepared) -> Loss:
        """The mean for each piece."""
        mean = self.total(batch) / (batch.targets != IGNORED).sum()
        return Loss(mean, max(batch.words, 1), {"next": mean})

    def evaluate(self, dev: Iterable[GptBatch]) -> dict[str, float]:
        """The loss of a piece, and perplexities for each piece and for each word or end."""
        total, pieces, words = 0.0, 0, 0
        for batch in map(self.prepare, dev):
            total += self.total(batch).item()
            pieces, words = pieces + int((batch.targets != IGNORED).sum()), words + batch.words
        loss = total / max(pieces, 1)
        each = total / max(words, 1)
        return {"loss": loss, "piece_perplexity": float(np.exp(loss)), "word_perplexity": float(np.exp(each))}
