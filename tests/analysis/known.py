"""An encoder whose vectors are known: a word's own vector is given, and the layers above add the rest of its sentence."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from polyseme.base.config import Config
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers
from polyseme.text.words import get_splitter


@dataclass(frozen=True, kw_only=True)
class KnownConfig(Config):
    dim: int = 6


class Known(Encoder):
    """Layer 0 is the word's own vector; layer l is that, and l times the sum of all own vectors of the sentence."""

    kind = "known"
    config_type = KnownConfig

    def __init__(self, own: Mapping[str, Sequence[float]] | None = None, *, split: str = "english", weight: float = 1.0):
        config = KnownConfig(dim=len(next(iter(own.values()))) if own else 6)
        super().__init__(config, get_splitter(split))
        self.given = own or {}
        self.weight = nn.Parameter(torch.tensor([weight]))
        self.sentences = 0
        """Sentences read so far."""

    @property
    def layers(self) -> int:
        return 3

    @property
    def dim(self) -> int:
        return self.config.dim  # type: ignore[attr-defined]

    def layer_groups(self) -> dict[str, nn.Module]:
        return {}

    def own(self, word: str) -> np.ndarray:
        """Of a word that was not given: random, by its letters."""
        random = np.random.default_rng(zlib.crc32(word.encode("utf-8", "surrogatepass")))
        return np.asarray(self.given.get(word, random.normal(size=self.dim)), dtype=np.float32)

    def stack(self, words: Sequence[str]) -> np.ndarray:
        """(layers, words, dim), computed plainly."""
        own = np.stack([self.own(word) for word in words])
        return np.stack([own, own + own.sum(0), own + 2 * own.sum(0)]) * self.weight.item()

    def prepare(self, sentences: Sequence[str | Sequence[str]]) -> Batch:
        texts = self._texts(sentences)
        lengths = torch.tensor([len(text) for text in texts])
        return Batch(texts, torch.arange(int(lengths.max())) < lengths[:, None], lengths)

    def forward(self, batch: Batch) -> Layers:
        self.sentences += len(batch.inputs)
        states = torch.zeros(self.layers, *batch.mask.shape, self.dim)
        for row, text in enumerate(batch.inputs):
            states[:, row, : len(text)] = torch.from_numpy(self.stack(text))
        return Layers(states, batch.mask)
