"""From a model and the text of a domain to a model of that domain: more words, then more of the same training.

Every ELMo can be adapted, ours or a published one, with or without its output layer. One with an output layer adds the
frequent words of the text to its vocabulary (`encoders/vocabulary_extension`) and is compared with itself, before and after,
on held-out text and over the same words: those of the new vocabulary, and those of the old one. One without gets a new
output layer, trained from random weights with the rest.

The language model of ULMFiT is adapted as published (Howard and Ruder 2018): the learning rate falls by a factor of 2.6 from
each layer to the one below (discriminative fine-tuning), under a slanted triangular schedule; the optimizer is AdamW.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base.card import licence_of
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.base.files import read_json, write_text
from polyseme.base.imports import import_object
from polyseme.base.run import Run
from polyseme.encoders import shipped
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.fingerprint import hash_weights
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.encoders.vocabulary_extension import (
    add_output_layer,
    can_extend,
    extend_vocabulary,
    require_vocabulary,
    unknown_shares,
)
from polyseme.pretraining.card import CardData
from polyseme.pretraining.defaults import FULL_ON_CPU, NEGATIVES_ON_CPU
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import NEW_WORDS, ElmoAdaptation, allowed_batchings
from polyseme.pretraining.elmo_job import MappedShards, training_data, validation_data
from polyseme.pretraining.job import TrainingJob
from polyseme.pretraining.objective import Objective
from polyseme.pretraining.result import AdaptationResult
from polyseme.pretraining.ulmfit import UlmfitObjective, bptt_batches
from polyseme.pretraining.ulmfit import validation_data as bptt_validation_data
from polyseme.pretraining.ulmfit_config import UlmfitAdaptation
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.batching.bptt import BpttBatch, BpttBatches
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.batching.stream import SentenceBatches, TypeBatch
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from polyseme.training.checkpoint import has_checkpoint
from polyseme.training.resume import plain_settings
from polyseme.training.trainer import TrainOutput

_log = logging.getLogger(__name__)


def adapt(
    model: Elmo | Ulmfit,
    corpus: Corpus,
    out: str | Path,
    method: ElmoAdaptation | UlmfitAdaptation,
    run: Run,
    *,
    accept_changes: bool = False,
) -> AdaptationResult:
    """Continue the training of a model on a corpus, and write the best model to the folder `out`.

    The given model is changed in place, and trained to the last step. To resume an interrupted run, call this again with the
    same model, loaded anew.
    """
    job: AdaptationJob = import_object(method.job)(method, corpus, run, Path(out), accept_changes=accept_changes)
    job.model = model
    return job.fit()


@dataclass
class AdaptationJob(TrainingJob):
    """The steps of an adaptation that do not depend on the kind of model."""

    section = "adaptation"
    fits_held_out = True
    model: Any = None
    """The model, which is changed in place."""
    _added: tuple[str, ...] = ()
    _had_output: bool = True

    @abstractmethod
    def extend(self, shards: Shards) -> list[str]:
        """Give the model the words and the output layer that it lacks; return the new words of its vocabulary."""

    def fit(self) -> AdaptationResult:
        source = self.model.source
        own = source not in shipped.NAMES and source and Path(source).exists()
        if own and self.out.exists() and self.out.samefile(str(source)):
            raise UsageError(f"{self.out} is the model to adapt: choose another folder for {arg('out')}")
        if self.model.vocabulary is not None:
            require_vocabulary(self.model)
        result = super().fit()
        assert isinstance(result, AdaptationResult)
        return result

    def text_fingerprint(self, shards: Shards) -> dict[str, Any]:
        return super().text_fingerprint(shards) | {"model": fingerprint(self.model)}

    def build(self, shards: Shards) -> Elmo | Ulmfit:
        model: Elmo | Ulmfit = self.model
        model.splitter = self.corpus.splitter
        self._had_output = model.output is not None
        self._added = tuple(self.extend(shards))
        for group in self.method.freeze:
            model.freeze(group)
        if not any(weight.requires_grad for weight in model.parameters()):
            groups = ", ".join(model.layer_groups())
            raise UsageError(f"{arg('freeze')} leaves nothing to train: freeze fewer of the layer groups {groups}")
        return model

    def trial_model(self, shards: Shards) -> Elmo | Ulmfit:
        """Build on a copy: the model itself gets its new words once."""
        model = self.model
        self.model = copy.deepcopy(model)
        try:
            return self.build(shards)
        finally:
            self.model = model

    def predicted_words(self) -> int:
        return super().predicted_words() if self.model.vocabulary is None else len(self.model.vocabulary)

    def before_training(self, objective: Objective, dev: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
        if self._added and self._had_output:
            objective.old_size = len(self.model.vocabulary) - len(self._added)
        path = self.out / "run" / "before.json"
        before = _scores_before(objective, dev, path, settings, self.run) if self._had_output else None
        return {"before": before, "licence": licence_of(self.model.card)}

    def text_facts(self, shards: Shards) -> dict[str, Any]:
        return {
            "adapted_from": Path(self.model.source).resolve().name if self.model.source else None,
            "words_added": len(self._added),
            "new_output_layer": None if self._had_output else True,
            **super().text_facts(shards),
        }

    def result(self, output: TrainOutput, card: CardData) -> AdaptationResult:
        return AdaptationResult(**self.result_fields(output, card), before=card.before, added=list(self._added))


class ElmoAdaptationJob(AdaptationJob):
    """The adaptation of an ELMo."""

    method: ElmoAdaptation
    model: Elmo

    def encode_text(self) -> Shards:
        return MappedShards(super().encode_text(), self.model.config)

    def resolve_defaults(self, shards: Shards) -> ElmoAdaptation:
        config, method = self.model.config, self.method
        allowed = allowed_batchings(config)
        batching = method.batching or allowed[0]
        if batching not in allowed:
            what = "is a Transformer" if config.architecture == "transformer" else f"has the start state {config.start!r}"
            raise ConfigError(f"{arg('batching')} is {batching!r}, but this model {what}; allowed: {', '.join(allowed)}")
        new_words = method.new_words
        if new_words is None:
            new_words = NEW_WORDS if can_extend(self.model) else 0
            if not new_words:
                _log.warning("the adaptive output layer of this model takes no new words: none are added")
        elif new_words and not can_extend(self.model):
            raise ConfigError(f"{arg('new_words')} is {new_words}; allowed for a model with an adaptive output layer: 0")
        changes: dict[str, Any] = {"batching": batching, "new_words": new_words}
        if method.output is None and method.negatives is None and samples_by_default(self.model, method, shards, self.run):
            changes["negatives"] = NEGATIVES_ON_CPU
        return method.replace(**changes).resolved(shards.total, self.run)

    def extend(self, shards: Shards) -> list[str]:
        method, model = self.method, self.model
        added = [] if model.vocabulary is None else add_words(model, shards, method.new_words or 0, method.min_count)
        if model.output is None:
            add_output_layer(model, shards.most_frequent(method.vocabulary_size))
        return added

    def training_data(self, model: Elmo, shards: Shards, train: range) -> tuple[ElmoObjective, SentenceBatches | PackedBatches]:
        return training_data(self.method, model, shards, train, self.run)

    def validation_data(self, shards: Shards, held_out: range) -> list[TypeBatch]:
        return validation_data(shards, held_out)


def samples_by_default(model: Elmo | Ulmfit, method: ElmoAdaptation, shards: Shards, run: Run) -> bool:
    """Whether an adaptation trains with a sampled softmax if nothing else is said: on a CPU, for many words."""
    if run.device.type != "cpu" or not can_extend(model):
        return False
    size = min(method.vocabulary_size, len(shards.counts)) if model.vocabulary is None else len(model.vocabulary)
    return size > FULL_ON_CPU


class UlmfitAdaptationJob(AdaptationJob):
    """The adaptation of ULMFiT's language model."""

    method: UlmfitAdaptation
    model: Ulmfit

    def resolve_defaults(self, shards: Shards) -> UlmfitAdaptation:
        new_words = NEW_WORDS if self.method.new_words is None else self.method.new_words
        batch_size = self.method.resolved_batch_size(shards.total, self.run)
        changes: dict[str, Any] = {"batch_size": batch_size, "new_words": new_words}
        many = self.run.device.type == "cpu" and len(require_vocabulary(self.model)) > FULL_ON_CPU
        if self.method.negatives is None and self.method.train.minutes is not None and many and not has_checkpoint(self.out):
            changes["negatives"] = NEGATIVES_ON_CPU  # as in pre-training
        return self.method.replace(**changes)

    def extend(self, shards: Shards) -> list[str]:
        return add_words(self.model, shards, self.method.new_words or 0, self.method.min_count)

    def training_data(self, model: Ulmfit, shards: Shards, train: range) -> tuple[UlmfitObjective, BpttBatches]:
        objective = UlmfitObjective(model, type_ids(shards, model), self.method, layer_decay=self.method.layer_decay)
        return objective, bptt_batches(self.method, shards, train, self.run, backward=model.config.backward)

    def validation_data(self, shards: Shards, held_out: range) -> list[BpttBatch]:
        return bptt_validation_data(self.method, shards, held_out, backward=self.model.config.backward)


def fingerprint(model: Elmo | Ulmfit) -> str:
    """Return a hash of a model: its config, its vocabulary and its weights."""
    digest = hashlib.sha256(json.dumps(model.config.to_dict(format=1), sort_keys=True).encode())
    digest.update("\n".join(model.vocabulary or ()).encode("utf-8", "surrogatepass"))
    hash_weights(digest, model.state_dict(), header=lambda name, value: f"{name} {tuple(value.shape)}")
    return digest.hexdigest()


def missing_words(shards: Shards, vocabulary: Vocabulary, *, limit: int, min_count: int) -> list[str]:
    """Return the words of a text that a vocabulary lacks, most frequent first: at most `limit`, of at least `min_count`."""
    frequent = int(np.count_nonzero(shards.counts[len(SPECIAL_TOKENS) :] >= min_count))  # the first ones: counts fall
    types = itertools.chain.from_iterable(shards.type_blocks())
    words: dict[str, None] = {}  # a table that cuts words makes some of them equal
    for word in itertools.islice(types, len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + frequent):
        if len(words) == limit:
            break
        if word not in vocabulary:
            words[word] = None
    return list(words)


def add_words(model: Elmo | Ulmfit, shards: Shards, limit: int, min_count: int) -> list[str]:
    """Add the frequent words of a text to a model's vocabulary, and return them."""
    added = missing_words(shards, require_vocabulary(model), limit=limit, min_count=min_count)
    if added:
        extend_vocabulary(model, added, shares_of_added(shards, require_vocabulary(model), added))
    return added


def shares_of_added(shards: Shards, vocabulary: Vocabulary, added: Sequence[str]) -> list[float]:
    """Return the share of the unknown token's probability for words that a text adds to a vocabulary, by their counts."""
    counts = dict.fromkeys(added, 0)
    others, other_words = int(shards.counts[SPECIAL_TOKENS.index("<UNK>")]), 0
    types = itertools.chain.from_iterable(shards.type_blocks())
    for word, number in itertools.islice(zip(types, shards.counts.tolist(), strict=True), len(SPECIAL_TOKENS), None):
        if word in counts:
            counts[word] += number
        elif word not in vocabulary:
            others += number
            other_words += 1
    return unknown_shares(list(counts.values()), others, other_words)


def type_ids(shards: Shards, model: Ulmfit) -> TypeIds:
    """Return the row of a model's table for each type of a text, (types,); special tokens of the text are unknown words."""
    types = list(itertools.chain.from_iterable(shards.type_blocks()))
    ids: TypeIds = model.rows(types).astype(np.int32)
    ids[: len(SPECIAL_TOKENS)] = model.rows([model.config.unknown])[0]
    return ids


def _scores_before(objective: Objective, dev: Any, path: Path, settings: Mapping[str, Any], run: Run) -> dict[str, float]:
    """Return the scores before training: computed when a run starts, read from its folder when it is resumed."""
    key = hashlib.sha256(json.dumps(plain_settings(settings), sort_keys=True).encode()).hexdigest()
    if path.exists():
        try:
            values = read_json(path)
        except FormatError as error:
            _log.warning("%s: computing the scores before training again", error)
        else:
            if values.get("of") == key:
                return dict(values["scores"])
    scores = objective.to(run.device).evaluate(dev)
    if run.is_main_process:
        write_text(path, json.dumps({"of": key, "scores": scores}) + "\n")
    return scores
