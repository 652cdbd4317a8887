"""From a corpus to a trained ELMo or TagLM."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.encoders.taglm import TagLm
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import ElmoPretraining, ElmoTraining
from polyseme.pretraining.elmo_packed import PackedElmoObjective
from polyseme.pretraining.job import TrainingJob, shuffling, vocabulary_for
from polyseme.pretraining.ngram_counts import UNKNOWN
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import get_splitter

VALIDATION_WORDS = 2048  # per batch


class ElmoJob(TrainingJob):
    """The training of a new model."""

    method: ElmoPretraining
    both_directions = True
    _vectors: WordVectors | None = None

    def resolve_defaults(self, shards: Shards) -> ElmoPretraining:
        method = self.method
        if self.vectors is not None:
            if method.input == "characters":
                raise UsageError(f"{arg('vectors')} needs a word table: give {arg('input')} words or both")
            size = method.vocabulary_size or vocabulary_for(shards)
            self._vectors = self.vectors(shards.most_frequent(size))
            method = method.replace(word_dim=self._vectors.dim)
        return method.resolve_defaults(shards.total, self.run, vocabulary_for(shards))

    def build(self, shards: Shards) -> Elmo:
        return build(shards, self.method, self.corpus, self._vectors)

    def training_data(self, model: Elmo, shards: Shards, train: range) -> tuple[ElmoObjective, SentenceBatches | PackedBatches]:
        return training_data(self.method, model, shards, train, self.run)

    def validation_data(self, shards: Shards, held_out: range) -> list[TypeBatch]:
        return validation_data(shards, held_out)

    def vocabulary_ids(self, shards: Shards) -> TypeIds:
        types = np.arange(len(shards.counts), dtype=np.int32)
        return np.where(types < (self.method.vocabulary_size or 0), types, UNKNOWN).astype(np.int32)

    def text_fingerprint(self, shards: Shards) -> dict[str, Any]:
        vectors = {} if self._vectors is None else {"vectors": self._vectors.fingerprint()}
        return super().text_fingerprint(shards) | vectors

    def text_facts(self, shards: Shards) -> dict[str, Any]:
        words = min(self.method.vocabulary_size or 0, len(shards.counts))
        return super().text_facts(shards) | {"initial_vectors": self._vectors and self._vectors.summary(words)}


def build(shards: Shards, method: ElmoPretraining, corpus: Corpus | None = None, vectors: WordVectors | None = None) -> Elmo:
    """Build a new model for a text: its vocabulary is the most frequent words; `vectors` initialize its word table."""
    vocabulary = Vocabulary(shards.most_frequent(method.vocabulary_size or vocabulary_for(shards)))
    config = method.encoder_config(len(vocabulary)).replace(normalize_quotes=corpus is not None and corpus.normalise_quotes)
    kind = TagLm if method.name == "taglm" else Elmo
    words: dict[str, Any] = {"splitter": corpus.splitter if corpus else get_splitter("whitespace"), "vocabulary": vocabulary}
    if method.tied:
        model = kind(config, **words)
        tied = model.tie_output()
        nn.init.normal_(tied.weight, std=tied.dim**-0.5)  # a table's default of 1 would make the first scores too large
    else:
        softmax = AdaptiveSoftmax if method.output == "adaptive" else FullSoftmax
        model = kind(config, output=softmax(len(vocabulary), config.output), **words)
    if vectors is not None:
        initialize_word_table(model, vectors)
    return model


def initialize_word_table(model: Elmo, vectors: WordVectors) -> None:
    """Copy vectors into a model's word table; all other rows are random, with the same standard deviation."""
    table = model.tokens.words
    assert table is not None and model.vocabulary is not None
    if not vectors.words:
        raise PolysemeError(
            f"none of the {len(model.vocabulary):,} words of the vocabulary is among the {vectors.total:,} vectors: "
            "are they for another language, or is the text split into words in another way?"
        )
    rows, values = torch.from_numpy(model.vocabulary.ids(vectors.words)), torch.from_numpy(vectors.vectors)
    with torch.no_grad():
        table.weight.normal_(std=float(values.std(correction=0)))
        table.weight[rows] = values.to(table.weight)


def training_data(
    method: ElmoTraining, model: Elmo, shards: Shards, sentences: range, run: Run
) -> tuple[ElmoObjective, SentenceBatches | PackedBatches]:
    """Return the objective around a model, and its batches of some sentences; the method has no open settings."""
    assert method.batch_words is not None and method.batching is not None
    options: dict[str, Any] = {"dropout": method.dropout, "negatives": method.samples}
    if method.batching == "sentences":
        objective = ElmoObjective(model, shards, **options)
        return objective, SentenceBatches(shards, sentences, batch_words=method.batch_words, **shuffling(run))
    rows = max(1, method.batch_words // method.bptt)
    objective = PackedElmoObjective(model, shards, stream=method.batching == "stream", **options)
    fraction = method.document_fraction
    batches = PackedBatches(shards, sentences, batch_size=rows, bptt=method.bptt, document_fraction=fraction, **shuffling(run))
    return objective, batches


def validation_data(shards: Shards, held_out: range) -> list[TypeBatch]:
    """Return the held-out sentences as batches."""
    return list(SentenceBatches(shards, held_out, batch_words=VALIDATION_WORDS).in_order())


class MappedShards(Shards):
    """Shards whose words are spelled as a model knows them: with its special tokens, and cut where its table cuts words."""

    def __init__(self, shards: Shards, config: ElmoConfig) -> None:
        super().__init__(
            shards.words,
            shards.offsets,
            shards.counts,
            fingerprint=shards.fingerprint,
            folder=shards.folder,
            types=shards._types,
            documents=shards.documents,
        )
        self._tokens = dict(zip(SPECIAL_TOKENS, (config.begin, config.end, config.unknown), strict=True))
        self._max_characters = config.words.max_characters if config.words is not None else None
        changes = {old: new for old, new in self._tokens.items() if new != old}
        if changes or self._max_characters is not None:
            self.variant = "-" + hashlib.sha256(repr((changes, self._max_characters)).encode()).hexdigest()[:8]

    def type_blocks(self, size: int = 8192) -> Iterator[list[str]]:
        """Yield the distinct words in their order, some at a time."""
        for block in super().type_blocks(size):
            yield [self._tokens.get(word, word)[: self._max_characters] for word in block]
