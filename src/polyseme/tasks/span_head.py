"""Spans straight from an encoder that reads a question and a paragraph together (Devlin et al. 2019): one linear layer.

Each word of the paragraph gets a score as a beginning and one as an end; where the network may say that there is no answer, the
mark that begins the text is scored for that. A paragraph that is longer than the network reads goes through in windows that
overlap, each with the question before it: a word is scored where it has most context, and the mark is the mean of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.networks.bidaf import AnswerScores
from polyseme.tasks.features import Features
from polyseme.tasks.linear_head import new_layer, only_encoder


@dataclass(frozen=True)
class SpanInputs:
    """Paragraphs beside their questions, ready for the device."""

    batch: Batch
    mask: Tensor
    """(paragraphs, words): True where a word is; a place for one word at least."""
    lengths: Tensor
    """(paragraphs,): words of each with its question; on the CPU."""


@dataclass(frozen=True)
class SpanVectors:
    """What the encoder made of them."""

    words: Tensor
    """(paragraphs, words, dim)."""
    summary: Tensor
    """(paragraphs, dim)."""
    mask: Tensor


class SpanHead(nn.Module):
    """Paragraphs beside their questions -> `AnswerScores`."""

    def __init__(self, features: Features, *, dropout: float, none: bool) -> None:
        super().__init__()
        encoder = only_encoder(features)
        if not encoder.reads_pairs:
            given = f"network is 'linear', but the encoder ({encoder.kind}) does not read a question and a paragraph together"
            raise ConfigError(f"{given}; give a bert, or the network 'bidaf'")
        self.tuned = bool(features.tuned)
        self._encoder = [encoder]  # in a list: its weights are the features'
        self.dropout = nn.Dropout(dropout)
        self.scores = new_layer(encoder.dim, 2)
        self.none = new_layer(encoder.dim, 1) if none else None

    @property
    def encoder(self) -> Encoder:
        """What reads the texts."""
        return self._encoder[0]

    def prepare(self, questions: Sequence[list[str]], paragraphs: Sequence[list[str]]) -> SpanInputs:
        """As many questions as paragraphs."""
        batch = self.encoder.prepare_pair(questions, paragraphs)
        empty = batch.mask.new_zeros(len(paragraphs), 1)
        lengths = torch.tensor([len(a) + len(b) for a, b in zip(questions, paragraphs, strict=True)])
        return SpanInputs(batch, batch.mask if batch.mask.shape[1] else empty, lengths)

    def read(self, inputs: SpanInputs) -> SpanVectors:
        """What the encoder's top layer knows."""
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
