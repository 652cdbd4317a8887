"""From a corpus to a left-to-right language model: what the NNLM and ULMFiT share.

The vocabulary is the most frequent words, indexed as for n-grams: special tokens first, then by falling count; an `<unk>` of
the text is that of the model. Validation uses the full distribution.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.errors import arg
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.nn.output.sampled import SampledSoftmax
from polyseme.nn.to_device import to_device
from polyseme.pretraining.job import TrainingJob, vocabulary_for
from polyseme.pretraining.ngram_counts import UNKNOWN
from polyseme.pretraining.nnlm_config import LeftToRightPretraining
from polyseme.pretraining.objective import EVALUATION_SCORES, Objective
from polyseme.pretraining.result import OLD_VOCABULARY
from polyseme.pretraining.vocabulary_index import TypeIds, index_vocabulary
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.base import Loss
from polyseme.training.checkpoint import has_checkpoint

_log = logging.getLogger(__name__)


class LeftToRightObjective(Objective):
    """Each word from those before it, by the full or a sampled softmax."""

    score_name = "perplexity"

    def __init__(self, model: LeftToRight, ids: TypeIds, *, negatives: int | None = None) -> None:
        super().__init__(model)
        self._ids = ids
        self._sampled = SampledSoftmax(model.output, negatives) if negatives is not None else None

    @abstractmethod
    def predictions(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the states of a batch that is not prepared, (n, output.dim), and their targets, (n,)."""

    def evaluate(self, dev: Iterable[Any]) -> dict[str, float]:
        """Return the perplexity by the full distribution."""
        total, old, count = 0.0, 0.0, 0
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in dev:
                states, targets = self.predictions(batch)
                scores = self.model.output.log_probs(states, targets, numbers=EVALUATION_SCORES)
                total -= float(scores.double().sum())
                if self.old_size is not None:
                    old -= float(self.old_log_probs(states, targets, scores).double().sum())
                count += len(targets)
        self.train(training)
        found = {"perplexity": float(np.exp(total / count))}
        return found if self.old_size is None else found | {OLD_VOCABULARY: float(np.exp(old / count))}

    def mean_loss(self, states: Tensor, targets: Tensor, words: int) -> Loss:
        """Return the mean loss of states (n, output.dim) and their targets (n,)."""
        total, _ = (self._sampled or self.model.output).loss(states, targets)
        return Loss(total=total / len(targets), words=words, sampled=self._sampled is not None)

    def word_ids(self, types: np.ndarray, *, ends: np.ndarray) -> NDArray[np.int64]:
        """Turn types of a text into ids of the vocabulary; `ends` says where it ends, since a text may hold the end token."""
        ids = self._ids[types].astype(np.int64)
        ids[ends] = self.model.end
        return ids

    def move(self, values: np.ndarray) -> Tensor:
        """Copy an array to the model's device; to a GPU without waiting for it."""
        return to_device(torch.from_numpy(np.ascontiguousarray(values)), self.model.device)


class LeftToRightJob(TrainingJob):
    """The training of a new model."""

    method: LeftToRightPretraining
    ids: TypeIds
    """Ids of the vocabulary for the types of the text."""

    @abstractmethod
    def new_model(self, vocabulary: Vocabulary) -> LeftToRight:
        """Build the model."""

    def resolve_defaults(self, shards: Shards) -> LeftToRightPretraining:
        method = self.method.resolve_defaults(shards.total, self.run)
        return method if has_checkpoint(self.out) else method.for_minutes(vocabulary_for(shards), self.run)

    def vocabulary_ids(self, shards: Shards) -> TypeIds:
        return self.ids

    def build(self, shards: Shards) -> LeftToRight:
        method = self.method
        words, self.ids = index_vocabulary(shards, vocabulary_size=method.vocabulary_size, min_count=method.min_count)
        if self.run.is_main_process and not has_checkpoint(self.out) and not self._trains_unknown(shards):
            _log.warning(
                "every word of the text is in the vocabulary, so <unk> is not trained: for perplexities of other text, give %s "
                "or %s",
                arg("min_count", 2),
                arg("vocabulary_size"),
            )
        return self.new_model(Vocabulary(words, unknown="<unk>", begin="<s>", end="</s>"))

    def _trains_unknown(self, shards: Shards) -> bool:
        """Whether the training sentences have a word that is `<unk>`: by the counts of all, less those held out."""
        _, held_out = self.split(shards)
        begin, end = shards.offsets[held_out.start], shards.offsets[held_out.stop]
        counts = shards.counts - np.bincount(shards.words[begin:end], minlength=len(shards.counts))
        return bool(counts[self.ids == UNKNOWN].any())
