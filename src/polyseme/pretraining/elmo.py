"""Teach an ELMo its language: each word from all to its left, and each word from all to its right.

Peters et al. 2018: the negative log-likelihood of both directions, with shared word encoder and output layer and LSTMs apart.
Sentences are read one by one from a learned start state, where the original packed them into endless rows: so a model
of ours needs no warm-up, and gives the same vectors alone as in a batch. Validation is always by the full distribution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.encoders.batch import Batch
from polyseme.encoders.elmo import Elmo, ElmoInputs
from polyseme.nn.output.sampled import SampledSoftmax
from polyseme.pretraining.word_lookup import WordLookup
from polyseme.text.batching.stream import TypeBatch
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Learner, Loss

_SCORES = 1 << 22  # computed at a time in evaluation, which should not need more memory than training: 16 MB


@dataclass(frozen=True)
class LanguageBatch:
    """A batch for the encoder, and the output ids of its words and marks (batch, words + 2)."""

    inputs: Batch
    targets: Tensor
    words: int
    """Words of the text, marks not counted."""


class ElmoObjective(Learner):
    """The bidirectional language model around an encoder that has an output layer."""

    score_name = "perplexity"

    def __init__(
        self, model: Elmo, shards: Shards, *, dropout: float = 0.1, negatives: int | None = None, card: str | None = None
    ) -> None:
        super().__init__()
        assert model.output is not None and model.vocabulary is not None
        self.model = model
        self.dropout, model.contextualizer.dropout = dropout, dropout
        self.card = card
        self._words = WordLookup(model, shards)
        self._sampled = SampledSoftmax(model.output, negatives) if negatives is not None else None

    def prepare(self, batch: TypeBatch) -> LanguageBatch:
        """Type ids -> tensors on the model's device."""
        return self.sentences(batch)

    def sentences(self, batch: TypeBatch) -> LanguageBatch:
        """Whole sentences as type ids -> tensors on the model's device."""
        words, index = self._words.distinct(batch.types)
        mask = np.arange(batch.types.shape[1] - 2) < batch.lengths[:, None]
        inputs = Batch(ElmoInputs(words, torch.from_numpy(index)), self._words.move(mask), self._words.move(batch.lengths))
        return LanguageBatch(inputs, self._words.outputs(batch.types), batch.words)

    def predictions(self, batch: LanguageBatch) -> list[tuple[Tensor, Tensor]]:
        """States and what they should predict, for each direction: (predictions, output), (predictions,)."""
        left, right = self.model.top_states(batch.inputs)
        places = torch.arange(batch.targets.shape[1] - 1, device=batch.targets.device)
        inside = places < batch.inputs.lengths[:, None] + 1  # a sentence of n words has n + 1 predictions
        return [
            (left[:, :-1][inside], batch.targets[:, 1:][inside]),
            (right[:, 1:][inside], batch.targets[:, :-1][inside]),
        ]

    def loss(self, batch: LanguageBatch) -> Loss:
        """The mean loss a prediction, over both directions."""
        left, right = self.predictions(batch)
        return self.mean_loss(torch.stack([left[0], right[0]]), torch.stack([left[1], right[1]]), batch.words)

    def mean_loss(self, states: Tensor, targets: Tensor, words: int) -> Loss:
        """Top states (2, n, output) and what they should predict (2, n) -> the mean over both directions, for the loop."""
        output = self._sampled or self.model.output
        assert output is not None
        states = F.dropout(states, self.dropout, self.training)
        total, each = output.loss(states.flatten(0, 1), targets.flatten())
        forward, backward = each.view(2, -1).mean(1)
        parts = {"forward": forward, "backward": backward}
        return Loss(total=total / targets.numel(), words=words, components=parts, sampled=self._sampled is not None)

    def evaluate(self, dev: Iterable[TypeBatch]) -> dict[str, float]:
        """Perplexities by the full distribution: forward, backward, and exp of the mean loss of both."""
        assert self.model.output is not None
        totals, count = np.zeros(2), 0
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in dev:
                for direction, (states, targets) in enumerate(self.predictions(self.sentences(batch))):
                    scores = self.model.output.log_probs(states, targets, numbers=_SCORES)
                    totals[direction] -= float(scores.double().sum())
                count += len(batch.lengths) + batch.words
        self.train(training)
        forward, backward = totals / count
        return {
            "perplexity": float(np.exp((forward + backward) / 2)),
            "forward": float(np.exp(forward)),
            "backward": float(np.exp(backward)),
        }

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save_pretrained(folder, card=self.card)
