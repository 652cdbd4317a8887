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

from polyseme.encoders.base import Batch
from polyseme.encoders.elmo import Elmo, ElmoInputs, WordInputs
from polyseme.nn.output import SampledSoftmax
from polyseme.text.characters import Characters
from polyseme.text.stream import TypeBatch
from polyseme.training.base import Learner, Loss

UNKNOWN = 2  # type id and output id of the unknown word


class Spelling:
    """The characters of every distinct word of a corpus, spelled once: 100 bytes a word."""

    def __init__(self, speller: Characters, types: list[str], *, at_once: int = 65536) -> None:
        self.ids = np.empty((len(types), speller.max_length), dtype=np.int16)
        self.lengths = np.empty(len(types), dtype=np.int64)
        for begin in range(0, len(types), at_once):
            end = min(begin + at_once, len(types))
            self.ids[begin:end], self.lengths[begin:end] = speller.encode(types[begin:end])


@dataclass(frozen=True)
class LanguageBatch:
    """A batch for the encoder, and the output ids of its words and marks (batch, words + 2)."""

    inputs: Batch
    targets: Tensor


class ElmoObjective(Learner):
    """The bidirectional language model around an encoder that has an output layer."""

    score_name = "perplexity"

    def __init__(
        self, model: Elmo, types: list[str], *, dropout: float = 0.1, negatives: int | None = None, card: str | None = None
    ) -> None:
        super().__init__()
        assert model.output is not None and model.vocabulary is not None
        self.model = model
        self.dropout, model.lstm.dropout = dropout, dropout
        self.card = card
        self._spelling = Spelling(model.speller, types) if model.speller is not None else None
        self._sampled = SampledSoftmax(model.output, negatives) if negatives is not None else None

    def prepare(self, batch: TypeBatch) -> LanguageBatch:
        """Type ids -> tensors on the model's device; the vocabulary is the most frequent types, so ids carry over."""
        device = self.model.device
        distinct, index = np.unique(batch.types, return_inverse=True)
        outputs = np.where(distinct < len(self.model.output.weight), distinct, UNKNOWN)  # type: ignore[union-attr]
        characters = lengths = words = None
        if self._spelling is not None:
            characters = torch.from_numpy(self._spelling.ids[distinct].astype(np.int64)).to(device)
            lengths = torch.from_numpy(self._spelling.lengths[distinct])
        if self.model.config.words is not None:
            words = torch.from_numpy(outputs).to(device)
        placed = index.reshape(batch.types.shape)
        counts = torch.from_numpy(batch.lengths)
        mask = torch.arange(batch.types.shape[1] - 2) < counts[:, None]
        inputs = Batch(
            ElmoInputs(WordInputs(characters, lengths, words), torch.from_numpy(placed)), mask.to(device), counts.to(device)
        )
        return LanguageBatch(inputs, torch.from_numpy(outputs[placed]).to(device))

    def predictions(self, batch: LanguageBatch) -> list[tuple[Tensor, Tensor]]:
        """States and what they should predict, for each direction: (predictions, output), (predictions,)."""
        left, right = self.model.top_states(batch.inputs)
        places = torch.arange(batch.targets.shape[1] - 1, device=batch.targets.device)
        inside = places < batch.inputs.lengths[:, None] + 1  # a sentence of n words has n + 1 predictions
        return [
            (left[:, :-1][inside], batch.targets[:, 1:][inside]),
            (right[:, 1:][inside], batch.targets[:, :-1][inside]),
        ]

    def loss(self, batch: TypeBatch) -> Loss:
        """The mean loss a prediction, over both directions."""
        output = self._sampled or self.model.output
        assert output is not None
        sums = []
        for states, targets in self.predictions(self.prepare(batch)):
            sums.append(output.loss(F.dropout(states, self.dropout, self.training), targets))
        count = len(batch.lengths) + batch.words
        parts = {"forward": sums[0].detach() / count, "backward": sums[1].detach() / count}
        return Loss(total=(sums[0] + sums[1]) / (2 * count), words=batch.words, parts=parts, sampled=self._sampled is not None)

    def evaluate(self, dev: Iterable[TypeBatch]) -> dict[str, float]:
        """Perplexities by the full distribution: forward, backward, and exp of the mean loss of both."""
        assert self.model.output is not None
        totals, count = np.zeros(2), 0
        training = self.training
        self.eval()
        with torch.no_grad():
            for batch in dev:
                for direction, (states, targets) in enumerate(self.predictions(self.prepare(batch))):
                    totals[direction] -= float(self.model.output.log_probs(states, targets).double().sum())
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
