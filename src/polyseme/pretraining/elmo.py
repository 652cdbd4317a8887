"""The objective of an ELMo: a bidirectional language model (Peters et al. 2018).

The loss is the negative log-likelihood of both directions, which share the word encoder and the output layer, but not the
LSTMs. Sentences are read one by one from a learned start state, where the original packed them into endless rows: so our
models need no warm-up, and give the same vectors alone as in a batch. Validation always uses the full distribution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.encoders.batch import Batch
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_words import ElmoInputs
from polyseme.nn.output.sampled import SampledSoftmax
from polyseme.pretraining.objective import EVALUATION_SCORES, Objective
from polyseme.pretraining.result import OLD_VOCABULARY
from polyseme.pretraining.word_lookup import WordLookup
from polyseme.text.batching.stream import TypeBatch
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Loss


@dataclass(frozen=True)
class LanguageBatch:
    """A batch for the encoder."""

    inputs: Batch
    targets: Tensor
    """Output ids of its words and special tokens, (batch, words + 2)."""
    words: int
    """Words of the text, without special tokens."""


class ElmoObjective(Objective):
    """The bidirectional language model around an encoder that has an output layer."""

    score_name = "perplexity"

    def __init__(self, model: Elmo, shards: Shards, *, dropout: float = 0.1, negatives: int | None = None) -> None:
        super().__init__(model)
        assert model.output is not None and model.vocabulary is not None
        self.dropout, model.contextualizer.dropout = dropout, dropout
        self._words = WordLookup(model, shards)
        self._sampled = SampledSoftmax(model.output, negatives) if negatives is not None else None

    def prepare(self, batch: TypeBatch) -> LanguageBatch:
        """Turn type ids into tensors on the model's device."""
        return self.sentences(batch)

    def sentences(self, batch: TypeBatch) -> LanguageBatch:
        """Turn sentences of type ids into tensors on the model's device."""
        words, index = self._words.distinct(batch.types)
        mask = np.arange(batch.types.shape[1] - 2) < batch.lengths[:, None]
        inputs = Batch(ElmoInputs(words, torch.from_numpy(index)), self._words.move(mask), self._words.move(batch.lengths))
        return LanguageBatch(inputs, self._words.outputs(batch.types), batch.words)

    def predictions(self, batch: LanguageBatch) -> list[tuple[Tensor, Tensor]]:
        """Return states (predictions, output) and their targets (predictions,) for each direction."""
        left, right = self.model.top_states(batch.inputs)
        positions = torch.arange(batch.targets.shape[1] - 1, device=batch.targets.device)
        inside = positions < batch.inputs.lengths[:, None] + 1  # a sentence of n words has n + 1 predictions
        return [
            (left[:, :-1][inside], batch.targets[:, 1:][inside]),
            (right[:, 1:][inside], batch.targets[:, :-1][inside]),
        ]

    def loss(self, batch: LanguageBatch) -> Loss:
        """Return the mean loss of a prediction, over both directions."""
        left, right = self.predictions(batch)
        return self.mean_loss(torch.stack([left[0], right[0]]), torch.stack([left[1], right[1]]), batch.words)

    def mean_loss(self, states: Tensor, targets: Tensor, words: int) -> Loss:
        """Return the mean loss of top states (2, n, output) and their targets (2, n), for both directions."""
        output = self._sampled or self.model.output
        assert output is not None
        states = F.dropout(states, self.dropout, self.training)
        total, each = output.loss(states.flatten(0, 1), targets.flatten())
        forward, backward = each.view(2, -1).mean(1)
        parts = {"forward": forward, "backward": backward}
        return Loss(total=total / targets.numel(), words=words, components=parts, sampled=self._sampled is not None)

    def evaluate(self, dev: Iterable[TypeBatch]) -> dict[str, float]:
        """Return the perplexities of the full distribution: forward, backward, and exp of the mean loss of both."""
        assert self.model.output is not None
        totals, old, count = np.zeros(2), 0.0, 0
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in dev:
                for direction, (states, targets) in enumerate(self.predictions(self.sentences(batch))):
                    scores = self.model.output.log_probs(states, targets, numbers=EVALUATION_SCORES)
                    totals[direction] -= float(scores.double().sum())
                    if self.old_size is not None:
                        old -= float(self.old_log_probs(states, targets, scores).double().sum())
                count += len(batch.lengths) + batch.words
        self.train(training)
        forward, backward = totals / count
        found = {
            "perplexity": float(np.exp((forward + backward) / 2)),
            "forward": float(np.exp(forward)),
            "backward": float(np.exp(backward)),
        }
        return found if self.old_size is None else found | {OLD_VOCABULARY: float(np.exp(old / count / 2))}
