"""An encoder whose vectors a test decides, so that the right answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from polyseme.base.config import Config
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.text.words import get_splitter

Vectors = Callable[[list[str], int], list[list[float]]]
"""The words of a sentence and a position -> a vector for each layer."""


@dataclass(frozen=True, kw_only=True)
class FakeConfig(Config):
    """Nothing to set."""


class Fake(Encoder):
    """Layers of vectors by a function of the sentence and the position."""

    kind = "fake"
    config_type = FakeConfig

    def __init__(self, vectors: Vectors, *, words: str = "whitespace") -> None:
        super().__init__(FakeConfig(), get_splitter(words))
        self.vectors = vectors
        self.position = nn.Parameter(torch.zeros(1))
        self.read: list[list[str]] = []
        """The sentences that were embedded."""

    @property
    def layers(self) -> int:
        return len(self.vectors(["a"], 0))

    @property
    def dim(self) -> int:
        return len(self.vectors(["a"], 0)[0])

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = [self.words(sentence) for sentence in sentences]
        self.read += texts
        lengths = torch.tensor([len(text) for text in texts])
        return Batch(texts, torch.arange(int(lengths.max()))[None] < lengths[:, None], lengths)

    def forward(self, batch: Batch) -> Layers:
        states = torch.zeros(self.layers, *batch.mask.shape, self.dim)
        for row, words in enumerate(batch.inputs):
            for position in range(len(words)):
                states[:, row, position] = torch.tensor(self.vectors(words, position))
        return Layers(states, batch.mask)

    def layer_groups(self) -> dict[str, nn.Module]:
        return {}
