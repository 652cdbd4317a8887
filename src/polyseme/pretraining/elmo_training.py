"""What every training of an ELMo shares, whether it begins from random numbers or from a model: text, batching, loss.

The end of the text is held out, the rest is laid into batches, and an objective around the model reads them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from polyseme.base.config import Config
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_packed import PackedElmoObjective
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.corpus import Corpus
from polyseme.text.counting.counts import SPECIAL_TOKENS
from polyseme.text.shards.shards import Shards

NEGATIVES = 8192  # as in bilm-tf
DEV_WORDS = 2048  # of a batch in validation
HELD_OUT = 2000  # sentences kept for validation at most; a hundredth of the text where that is less

SKIP_NORM = 10.0
"""Gradients longer than this are not followed: usual ones are below 1, for the loss is a mean over predictions."""

Batching = Literal["packed", "stream", "sentences"]


@dataclass(frozen=True, kw_only=True)
class ElmoTraining(Config):
    """How a model is taught."""

    output: Literal["full", "sampled", "adaptive"] = "full"
    """Train by the full distribution, by a sample of it, or by one whose rare words are in clusters (Grave et al. 2017).

    The last two are for large vocabularies. Validation is always by the full distribution."""
    negatives: int = NEGATIVES
    """Words of the sample, where the output is sampled."""
    dropout: float = 0.1
    """On the input of each layer and on the top output."""
    batching: Batching | None = None
    """How sentences are laid into batches; None: what suits the model.

    - packed: end to end in rows of one length, each from the model's start state; gradients end at a batch's edge.
    - stream: so too, but a sentence begins with what the one before left, as published; no start state is learned.
    - sentences: whole ones, padded to the longest; gradients go through whole sentences."""
    batch_words: int | None = None
    """Words and marks of a batch, padding counted; None: 2,560, on a GPU 20,480, and less for little text."""
    bptt: int = 20
    """Words of a lane in a batch, through which gradients go."""

    def problems(self) -> list[str]:
        """What cannot be, whatever the model is."""
        problems = []
        if not 0 <= self.dropout < 1:
            problems.append(f"dropout is {self.dropout}; allowed: from 0 to below 1")
        if self.negatives < 1:
            problems.append(f"negatives is {self.negatives}; a sample has at least 1 word")
        elif self.negatives != NEGATIVES and self.output != "sampled":
            problems.append(f"negatives is {self.negatives}, but output is {self.output!r}: set output to 'sampled'")
        if self.bptt < 1 or (self.batch_words is not None and self.batch_words < 1):
            problems.append(f"bptt is {self.bptt} and batch_words {self.batch_words}; both must be at least 1")
        return problems

    @property
    def sample(self) -> int | None:
        """Words that the training loss draws; None: it looks at all."""
        return self.negatives if self.output == "sampled" else None

    def training_settings(self) -> dict[str, Any]:
        """What makes a run what it is, but for the loop, which tells its own settings."""
        return {name: value for name, value in self.to_dict().items() if name != "train"}

    def default_batch_words(self, words: int, run: Run) -> int:
        """The words of a batch, for a text of so many words and a device."""
        usual = 20_480 if run.device.type == "cuda" else 2560
        fitting = max(256, words // (100 * run.world_size))  # a hundred steps an epoch, and no more words than fill lanes
        return self.batch_words or min(usual, fitting)


class MappedShards(Shards):
    """Shards whose words are as a model knows them: its own marks, and words cut where its table cuts them."""

    def __init__(self, shards: Shards, config: ElmoConfig) -> None:
        super().__init__(
            shards.words,
            shards.offsets,
            shards.counts,
            fingerprint=shards.fingerprint,
            folder=shards.folder,
            types=shards._types,
        )
        self._marks = dict(zip(SPECIAL_TOKENS, (config.begin, config.end, config.unknown), strict=True))
        self._cut = config.words.max_characters if config.words is not None else None
        changes = {old: new for old, new in self._marks.items() if new != old}
        if changes or self._cut is not None:
            self.variant = "-" + hashlib.sha256(repr((changes, self._cut)).encode()).hexdigest()[:8]

    def type_blocks(self, size: int = 8192) -> Iterator[list[str]]:
        """Every distinct word in order, some at a time."""
        for block in super().type_blocks(size):
            yield [self._marks.get(word, word)[: self._cut] for word in block]


def split(shards: Shards) -> tuple[range, range]:
    """Sentences to train on, and sentences at the end to validate on."""
    held_out = min(HELD_OUT, max(1, len(shards) // 100))
    if len(shards) < 2:
        raise PolysemeError(f"the text has {len(shards)} sentences ({shards.total} words); training needs at least 2")
    return range(len(shards) - held_out), range(len(shards) - held_out, len(shards))


def prepare(
    shards: Shards, sentences: range, model: Elmo, config: ElmoTraining, run: Run
) -> tuple[ElmoObjective, SentenceBatches | PackedBatches]:
    """The objective around a model and the batches of some sentences: all that a training step needs.

    What the config leaves open must be chosen before.
    """
    assert config.batch_words is not None and config.batching is not None
    share: dict[str, Any] = {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
    options: dict[str, Any] = {"dropout": config.dropout, "negatives": config.sample}
    if config.batching == "sentences":
        objective = ElmoObjective(model, shards, **options)
        return objective, SentenceBatches(shards, sentences, batch_words=config.batch_words, **share)
    lanes = max(1, config.batch_words // config.bptt)
    objective = PackedElmoObjective(model, shards, stream=config.batching == "stream", **options)
    return objective, PackedBatches(shards, sentences, batch_size=lanes, bptt=config.bptt, **share)


def validation(shards: Shards, held_out: range) -> list[TypeBatch]:
    """The held-out sentences as batches."""
    return list(SentenceBatches(shards, held_out, batch_words=DEV_WORDS).in_order())


def text_facts(corpus: Corpus, shards: Shards) -> dict[str, Any]:
    """What a card tells of the text."""
    return {
        "text": corpus.source.names,
        "words_of_text": shards.total,
        "sentences_of_text": len(shards),
        "distinct_words_of_text": len(shards.counts) - len(SPECIAL_TOKENS),
    }
