"""From a corpus to a language model that reads from left to right, under the one loop: what NNLM and ULMFiT share.

The text is encoded once, the most frequent words are the vocabulary, numbered as for n-grams (marks first, then by falling
count, an `<unk>` of the text the model's own), and the end of the text is held out. Validation is by the full distribution.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.config import Config
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.nn.output.sampled import SampledSoftmax
from polyseme.nn.to_device import to_device
from polyseme.pretraining.card import CardData, write_finished
from polyseme.pretraining.elmo_training import split, text_facts
from polyseme.pretraining.ngram import index_vocabulary
from polyseme.pretraining.ngram_counts import UNKNOWN
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter
from polyseme.training.base import Batches, Learner, Loss
from polyseme.training.checkpoint import has_checkpoint
from polyseme.training.config import TrainConfig
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)

SCORES = 1 << 22  # computed at a time in evaluation, which should not need more memory than training: 16 MB
Ids = NDArray[np.int32]
"""What each type of a text is in the vocabulary, (types,)."""
UNKNOWN_UNTRAINED = (
    "every word of the text is known, so <unk> is never learned; "
    "for perplexities of other text give --min-count 2 or --vocabulary N"
)
"""What is told before a training without unknown words, whose model would guess how likely new words are."""


class LeftToRightObjective(Learner):
    """Each word from those before it, by the full distribution or a sample of it."""

    score_name = "perplexity"

    def __init__(self, model: LeftToRight, ids: Ids, *, negatives: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.card: str | None = None
        self._ids = ids
        self._sampled = SampledSoftmax(model.output, negatives) if negatives is not None else None

    @abstractmethod
    def predictions(self, batch: Any) -> tuple[Tensor, Tensor]:
        """What the output layer reads, (n, output.dim), and what it should predict, (n,), of a batch that is not prepared."""

    def evaluate(self, dev: Iterable[Any]) -> dict[str, float]:
        """The perplexity by the full distribution."""
        total, count = 0.0, 0
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in dev:
                states, targets = self.predictions(batch)
                total -= float(self.model.output.log_probs(states, targets, numbers=SCORES).double().sum())
                count += len(targets)
        self.train(training)
        return {"perplexity": float(np.exp(total / count))}

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save_pretrained(folder, card=self.card)

    def mean_loss(self, states: Tensor, targets: Tensor, words: int) -> Loss:
        """States (n, output.dim) and what they should predict (n,) -> their mean loss."""
        total, _ = (self._sampled or self.model.output).loss(states, targets)
        return Loss(total=total / len(targets), words=words, sampled=self._sampled is not None)

    def rows(self, types: np.ndarray, *, ends: np.ndarray) -> NDArray[np.int64]:
        """Types of a text -> rows of the vocabulary; where it ends is said, since a text may hold the mark's name."""
        found = self._ids[types].astype(np.int64)
        found[ends] = self.model.end
        return found

    def move(self, values: np.ndarray) -> Tensor:
        """An array on the model's device; to a GPU without waiting for it."""
        return to_device(torch.from_numpy(np.ascontiguousarray(values)), self.model.device)


@dataclass(frozen=True, kw_only=True)
class LeftToRightPretraining(Config):
    """What is taught, and how."""

    vocabulary_size: int | None = None
    """Words that the model reads and predicts, marks counted: the most frequent ones; all others are `<unk>`. None: all."""
    min_count: int = 1
    """Words that come less often are `<unk>`."""
    negatives: int | None = None
    """Train by a sample of so many words of the vocabulary, for large ones; None: by all of them."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=10.0))
    """The budget and the loop."""

    @abstractmethod
    def build(self, vocabulary: Vocabulary, splitter: Splitter) -> LeftToRight:
        """A new model."""

    @abstractmethod
    def learner(self, model: Any, ids: Ids) -> LeftToRightObjective:
        """The objective around it."""

    @abstractmethod
    def batches(self, shards: Shards, sentences: range, run: Run) -> Batches:
        """The batches of some sentences to train on."""

    @abstractmethod
    def validation(self, shards: Shards, held_out: range) -> Iterable[Any]:
        """The held-out sentences for the objective's `evaluate`."""

    def resolve_defaults(self, words: int, run: Run) -> LeftToRightPretraining:
        """With what was left open chosen for a text of so many words and a device."""
        return self

    def problems(self, *rates: str) -> list[str]:
        """What cannot be, whatever the model is; `rates` are fields that are shares of dropped numbers."""
        found = [
            f"{name} is {value}; allowed: from 0 to below 1"
            for name, value in ((name, getattr(self, name)) for name in rates)
            if not 0 <= value < 1
        ]
        if self.vocabulary_size is not None and self.vocabulary_size < 4:
            found.append(f"vocabulary_size is {self.vocabulary_size}; it counts <s>, </s> and <unk>, so at least 4")
        for name in ("min_count", "negatives"):
            value = getattr(self, name)
            if value is not None and value < 1:
                found.append(f"{name} is {value}; it must be at least 1")
        return found

    def fit(
        self,
        corpus: Corpus,
        run: Run,
        out: str | Path,
        *,
        progress: Advance | None = None,
        accept_changes: bool = False,
    ) -> TrainOutput:
        """Train on a corpus; `out` holds the best model at any moment, and `out/run` what a restart needs.

        A run goes on under the same settings only, unless `accept_changes`.
        """
        out = Path(out)
        begun = has_checkpoint(out)
        shards = Shards.build(corpus, out / "run", progress, only_known=begun)
        train, held_out = split(shards)
        config = self.resolve_defaults(shards.total, run)
        words, ids = index_vocabulary(shards, vocabulary=self.vocabulary_size, min_count=self.min_count)
        if run.is_main_process and not begun and not _meets_unknown(shards, held_out, ids):
            _log.warning(UNKNOWN_UNTRAINED)
        run.seed_all()
        model = config.build(Vocabulary(words, unknown="<unk>", begin="<s>", end="</s>"), corpus.splitter)
        objective, batches = config.learner(model, ids), config.batches(shards, train, run)
        card = CardData(
            title=out.resolve().name,
            model=model.info(),
            text=text_facts(corpus, shards),
            options=config.to_dict() | {"seed": run.seed},
            run=run,
            words_per_epoch=batches.words_per_epoch,
            held_out=len(held_out),
        )
        objective.card = card.unfinished()
        taught = {name: value for name, value in config.to_dict().items() if name != "train"}
        result = Trainer(self.train, run).fit(
            objective,
            batches,
            config.validation(shards, held_out),
            out,
            settings={"pretraining": {"method": model.kind, **taught}, "corpus": shards.fingerprint},
            accept_changes=accept_changes,
        )
        if run.is_main_process:
            write_finished(out, card, result)
        return result


def _meets_unknown(shards: Shards, held_out: range, ids: Ids) -> bool:
    """Whether the sentences to train on have a word that is `<unk>`: by the counts of all, less those of the few held out."""
    begin, end = shards.offsets[held_out.start], shards.offsets[held_out.stop]
    counts = shards.counts - np.bincount(shards.words[begin:end], minlength=len(shards.counts))
    return bool(counts[ids == UNKNOWN].any())
