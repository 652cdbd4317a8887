"""The span head: answers from an encoder that reads a question and a paragraph together (Devlin et al. 2019), by one layer.

Each word of the paragraph has a score as the start and one as the end of the answer; where the network may find no answer, the
first special token is scored for that. A paragraph that is too long for the encoder is read in overlapping windows, each with
the question before it: a word is scored where it has most context, and the special token is the mean over windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import arg
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.networks.bidaf import AnswerScores
from polyseme.tasks.config import LINEAR
from polyseme.tasks.features import Features
from polyseme.tasks.linear_head import new_layer, only_encoder


@dataclass(frozen=True)
class SpanInputs:
    """Paragraphs with their questions, on the device."""

    batch: Batch
    mask: Tensor
    """(paragraphs, words): True where a word is; room for one word at least."""
    lengths: Tensor
    """(paragraphs,): words of each with its question; on the CPU."""


@dataclass(frozen=True)
class SpanVectors:
    """What the encoder computes of them."""

    words: Tensor
    """(paragraphs, words, dim)."""
    summary: Tensor
    """(paragraphs, dim)."""
    mask: Tensor


class SpanHead(nn.Module):
    """`AnswerScores` of paragraphs with their questions."""

    def __init__(self, features: Features, *, dropout: float, none: bool) -> None:
        super().__init__()
        encoder = only_encoder(features)
        if not encoder.reads_pairs:
            what = f"needs an encoder that reads text pairs, such as BERT; this encoder is {encoder.kind}"
            raise ConfigError(f"{arg('network', LINEAR)} {what}")
        self.tuned = bool(features.tuned)
        self._encoder = [encoder]  # in a list: its weights are the features'
        self.dropout = nn.Dropout(dropout)
        self.scores = new_layer(encoder.dim, 2)
        self.none = new_layer(encoder.dim, 1) if none else None

    @property
    def encoder(self) -> Encoder:
        """The encoder of the texts."""
        return self._encoder[0]

    def prepare(self, questions: Sequence[list[str]], paragraphs: Sequence[list[str]]) -> SpanInputs:
        """Prepare paragraphs, each with its question."""
        batch = self.encoder.prepare_pair(questions, paragraphs)
        empty = batch.mask.new_zeros(len(paragraphs), 1)
        lengths = torch.tensor([len(a) + len(b) for a, b in zip(questions, paragraphs, strict=True)])
        return SpanInputs(batch, batch.mask if batch.mask.shape[1] else empty, lengths)

    def encode(self, inputs: SpanInputs) -> SpanVectors:
        """Return the top layer of the encoder."""
        with nullcontext() if self.tuned else torch.no_grad():
            layers = self.encoder(inputs.batch)
        words = layers.states[-1]
        if not words.shape[1]:
            words = words.new_zeros(len(words), 1, words.shape[2])
        return SpanVectors(words, layers.summary, inputs.mask)

    def forward(self, vectors: SpanVectors) -> AnswerScores:
        scores = self.scores(self.dropout(vectors.words)).float().masked_fill(~vectors.mask.unsqueeze(2), MASKED_SCORE)
        none = None if self.none is None else self.none(self.dropout(vectors.summary)).float().squeeze(1)
        return AnswerScores(scores[:, :, 0], scores[:, :, 1], none)
