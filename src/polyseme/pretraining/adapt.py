"""From a model and a domain's text to a model of that domain: more words, then more of the same training.

Any ELMo can go on: ours or a published one, with its output layer or without. One with an output layer takes the text's
frequent words into its vocabulary (`encoders/vocabulary_extension`) and is compared with itself, before and after, on held-out
text and over the same words. One without gets a new output layer, trained from random numbers together with the rest.

What differs from system to system is an `Adaptation`: here ELMo's, in `adapt_ulmfit` that of ULMFiT.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from polyseme.base.card import licence_of
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.files import read_json, write_text
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders import shipped
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.encoders.fingerprint import hash_weights
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.encoders.vocabulary_extension import add_output_layer, can_extend, extend_vocabulary, require_vocabulary
from polyseme.pretraining.card import CardData, write_finished
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_training import (
    SKIP_NORM,
    Batching,
    ElmoTraining,
    MappedShards,
    prepare,
    split,
    text_facts,
    validation,
)
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.corpus import Corpus
from polyseme.text.counting.counts import SPECIAL_TOKENS
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.base import Batches, Learner
from polyseme.training.checkpoint import has_checkpoint
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from polyseme.training.trainer import Trainer, TrainOutput

_log = logging.getLogger(__name__)
NEW_WORDS = 10_000
RATE = 3e-4  # a third of a new model's: what is known should bend and not break
EPOCHS = 3.0


@dataclass(frozen=True, kw_only=True)
class ElmoAdaptation(ElmoTraining):
    """How a model goes on learning; batching None: packed, with a warm start state stream, Transformers sentences."""

    new_words: int | None = None
    """At most so many words of the text join the vocabulary, most frequent first; None: 10,000, adaptive outputs none."""
    min_count: int = 2
    """A word joins when the text has it so often."""
    vocabulary_size: int = 50_000
    """Words of a model that has no vocabulary, marks counted: the most frequent ones of the text."""
    output: Literal["full", "sampled"] = "full"
    """Train by the model's full distribution (an adaptive one by its clusters), or by a sample of it.

    A sample supposes words in falling frequency, as vocabularies have them; the added ones come last. Validation is always
    by the full distribution."""
    freeze: tuple[str, ...] = ()
    """Parts that stay as they are: tokens, layer1, layer2 ..., start, output."""
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(epochs=EPOCHS, optim=OptimConfig(learning_rate=RATE, skip_norm=SKIP_NORM))
    )
    """The budget and the loop."""

    def __post_init__(self) -> None:
        problems = self.problems()
        if self.new_words is not None and self.new_words < 0:
            problems.append(f"new_words is {self.new_words}; allowed: 0 (none) or more")
        if self.min_count < 1:
            problems.append(f"min_count is {self.min_count}; allowed: 1 or more")
        if self.vocabulary_size < 4:
            problems.append(f"vocabulary_size is {self.vocabulary_size}; it counts the three marks, so at least 4")
        if problems:
            raise ConfigError("; ".join(problems))

    def known(self, shards: Shards, model: Elmo) -> Shards:
        """The text in the words that the model knows."""
        return MappedShards(shards, model.config)

    def resolve_defaults(self, model: Elmo, words: int, run: Run) -> ElmoAdaptation:
        """With what was left open chosen for a model, a text of so many words and a device."""
        allowed = allowed_batchings(model.config)
        batching = self.batching or allowed[0]
        if batching not in allowed:
            what = "Transformers" if model.config.architecture == "transformer" else f"the start state {model.config.start!r}"
            raise ConfigError(f"batching is {batching!r}, but this model has {what}; allowed: {', '.join(allowed)}")
        new_words = self.new_words
        if new_words is None:
            new_words = NEW_WORDS if can_extend(model) else 0
            if not new_words:
                _log.warning("the adaptive output layer of this model takes no new words: none are added")
        elif new_words and not can_extend(model):
            raise ConfigError(f"new_words is {new_words}, but an adaptive output layer cannot take new words: set it to 0")
        return self.replace(batching=batching, new_words=new_words, batch_words=self.default_batch_words(words, run))

    def enlarge(self, model: Elmo, shards: Shards) -> list[str]:
        """Give a model the words and the output layer that it lacks; gives the words that joined its vocabulary."""
        added = [] if model.vocabulary is None else extend_with_text(model, shards, self.new_words or 0, self.min_count)
        if model.output is None:
            add_output_layer(model, shards.most_frequent(self.vocabulary_size))
        return added

    def objective(
        self, model: Elmo, shards: Shards, sentences: range, run: Run
    ) -> tuple[ElmoObjective, SentenceBatches | PackedBatches]:
        """What learns, and its batches of some sentences."""
        return prepare(shards, sentences, model, self, run)

    def validation(self, shards: Shards, held_out: range) -> list[TypeBatch]:
        """The held-out sentences as the objective evaluates them."""
        return validation(shards, held_out)


@dataclass(frozen=True)
class Adapted:
    """How an adaptation stands."""

    result: TrainOutput
    """Of the training; its `scores` are those after it."""
    before: dict[str, float] | None
    """The scores before it, over the same words and sentences; None: there was no output layer."""
    added: list[str]
    """Words that joined the vocabulary."""

    @property
    def after(self) -> dict[str, float]:
        """The scores of the model in the folder; empty where none was written yet."""
        return self.result.scores

    @property
    def better(self) -> bool | None:
        """Whether the model predicts the held-out text better than before; None where there is nothing to compare."""
        if self.before is None or not self.after:
            return None
        return self.after["perplexity"] < self.before["perplexity"]


def allowed_batchings(config: ElmoConfig) -> tuple[Batching, ...]:
    """The allowed_batchings in which a model can go on learning, the usual one first.

    A stream would leave a learned start state behind. A warm one follows from all weights, so only a stream, which needs no
    start state, spares computing it anew in each step. Published models learned from streams, and begin from zeros here:
    lanes teach them that beginning; a stream is for those that go back to programs which carry the state on.
    """
    if config.architecture == "transformer":
        return ("sentences",)
    if config.start == "learned":
        return ("packed", "sentences")
    return ("stream",) if config.start == "warm" else ("packed", "stream", "sentences")


class Adaptation(Protocol):
    """How a model of some system goes on learning; a config, which says what was chosen."""

    @property
    def train(self) -> TrainConfig: ...
    @property
    def freeze(self) -> tuple[str, ...]: ...
    def known(self, shards: Shards, model: Any) -> Shards: ...
    def resolve_defaults(self, model: Any, words: int, run: Run) -> Self: ...
    def training_settings(self) -> dict[str, Any]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def enlarge(self, model: Any, shards: Shards) -> list[str]: ...
    def objective(self, model: Any, shards: Shards, sentences: range, run: Run) -> tuple[Any, Batches]: ...
    def validation(self, shards: Shards, held_out: range) -> Any: ...


def adapt(
    model: Elmo | Ulmfit,
    corpus: Corpus,
    out: str | Path,
    config: Adaptation,
    run: Run,
    *,
    progress: Advance | None = None,
    accept_changes: bool = False,
) -> Adapted:
    """Go on training a model on a corpus; `out` holds the best model at any moment, and `out/run` what a restart needs.

    The model itself is changed, grown and trained to the last step; the best one is the folder's. To go on after a stop, call
    it again with the same model, loaded anew.
    """
    out = Path(out)
    own = model.source not in shipped.NAMES and model.source and Path(model.source).exists()
    if own and out.exists() and out.samefile(str(model.source)):
        raise UsageError(f"{out} is the model that would be adapted: choose another folder for the result")
    if model.vocabulary is not None:
        require_vocabulary(model)
    built = Shards.build(corpus, out / "run", progress, only_known=has_checkpoint(out))
    shards = config.known(built, model)
    train, held_out = split(shards)
    config = config.resolve_defaults(model, shards.total, run)
    settings = {"adaptation": config.training_settings(), "corpus": shards.fingerprint, "model": fingerprint(model)}
    run.seed_all()
    model.splitter = corpus.splitter
    began_with_output = model.output is not None
    added = config.enlarge(model, shards)
    _freeze(model, config.freeze)
    objective, batches = config.objective(model, shards, train, run)
    dev = config.validation(shards, held_out)
    before = _before(objective, dev, out / "run" / "before.json", settings, run) if began_with_output else None
    card = CardData(
        title=out.resolve().name,
        model=model.info(),
        text={
            "adapted_from": Path(model.source).resolve().name if model.source else None,
            "words_added": len(added),
            "new_output_layer": None if began_with_output else True,
            **text_facts(corpus, shards),
        },
        options=config.to_dict() | {"seed": run.seed},
        run=run,
        words_per_epoch=batches.words_per_epoch,
        held_out=len(held_out),
        before=before,
        licence=licence_of(model.card),
    )
    objective.card = card.unfinished()
    result = Trainer(config.train, run).fit(objective, batches, dev, out, settings=settings, accept_changes=accept_changes)
    if run.is_main_process:
        write_finished(out, card, result)
    return Adapted(result, before, added)


def fingerprint(model: Elmo | Ulmfit) -> str:
    """A name for exactly this model: a hash of its config, its vocabulary and every number."""
    digest = hashlib.sha256(json.dumps(model.config.to_dict(format=1), sort_keys=True).encode())
    digest.update("\n".join(model.vocabulary or ()).encode("utf-8", "surrogatepass"))
    hash_weights(digest, model.state_dict(), header=lambda name, value: f"{name} {tuple(value.shape)}")
    return digest.hexdigest()


def missing_words(shards: Shards, vocabulary: Vocabulary, *, limit: int, min_count: int) -> list[str]:
    """The words of a text that a vocabulary lacks, most frequent first: at most `limit`, each coming `min_count` times."""
    frequent = int(np.count_nonzero(shards.counts[len(SPECIAL_TOKENS) :] >= min_count))  # the first ones: counts fall
    types = itertools.chain.from_iterable(shards.type_blocks())
    found: dict[str, None] = {}  # a table that cuts words makes some of them equal
    for word in itertools.islice(types, len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + frequent):
        if len(found) == limit:
            break
        if word not in vocabulary:
            found[word] = None
    return list(found)


def extend_with_text(model: Elmo | Ulmfit, shards: Shards, limit: int, min_count: int) -> list[str]:
    """Take a text's frequent words into a model's vocabulary; gives them."""
    added = missing_words(shards, require_vocabulary(model), limit=limit, min_count=min_count)
    extend_vocabulary(model, added)
    return added


def _freeze(model: Elmo | Ulmfit, parts: tuple[str, ...]) -> None:
    for part in parts:
        model.freeze(part)
    if not any(weight.requires_grad for weight in model.parameters()):
        raise UsageError(f"every part is frozen ({', '.join(model.layer_groups())}), so nothing is left to train: freeze fewer")


def _before(objective: Learner, dev: Any, place: Path, settings: Mapping[str, Any], run: Run) -> dict[str, float]:
    """The scores of the model as it begins: computed when a run starts, read from its folder when it goes on."""
    key = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    if place.exists():
        try:
            kept = read_json(place)
        except FormatError as error:
            _log.warning("%s; computed anew", error)
        else:
            if kept.get("of") == key:
                return dict(kept["scores"])
    scores = objective.to(run.device).evaluate(dev)
    if run.is_main_process:
        write_text(place, json.dumps({"of": key, "scores": scores}) + "\n")
    return scores
