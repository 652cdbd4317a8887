"""From the word vectors of a text to one vector: which pooling `encode` uses, and what it needs of the layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.base.errors import UsageError, arg, nearest
from polyseme.encoders.embed_config import TextPooling
from polyseme.encoders.layer_choice import LayerChoice, select_layers
from polyseme.encoders.sentence_vectors import SentencePooler
from polyseme.nn.config import Pooling
from polyseme.nn.pooling import pool

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder


class TextPooler(Protocol):
    """Pools the words of one text at a time."""

    @property
    def layers(self) -> LayerChoice:
        """The layers that it needs."""

    @property
    def dim(self) -> int:
        """Size of its vectors."""

    def __call__(self, words: Sequence[str], layers: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pool the words of a text, as `embed` gives them for `layers`."""


class PlainPooler:
    """The mean, maximum, first or last word of the chosen layers, which are concatenated."""

    def __init__(self, how: Pooling, layers: LayerChoice, model: Encoder) -> None:
        self._how = how
        self.layers = layers
        chosen = select_layers(layers, model.layers).stack(torch.zeros(model.layers, 1))
        self.dim = model.dim * len(chosen) * (2 if how == "ends" else 1)

    def __call__(self, words: Sequence[str], layers: NDArray[np.float32]) -> NDArray[np.float32]:
        stack = layers[None] if layers.ndim == 2 else layers
        vectors = torch.from_numpy(stack).transpose(0, 1).flatten(1).unsqueeze(0)  # (1, words, layers * dim)
        pooled: NDArray[np.float32] = pool(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool), self._how)[0].numpy()
        return pooled


def text_pooler(model: Encoder, pooling: TextPooling | None = None, layers: LayerChoice | None = None) -> TextPooler:
    """Return what pools the texts of a model; without a name, the best that the model has statistics for."""
    if pooling is None:
        pooling = "mean" if model.sentence_statistics is None or layers is not None else "sif+mean"
    names = get_args(TextPooling)
    if pooling not in names:
        raise UsageError(f"unknown pooling {pooling!r}{nearest(pooling, names)}")
    if pooling != "sif" and pooling != "sif+mean":
        return PlainPooler(pooling, "mean" if layers is None else layers, model)
    if layers is not None:
        raise UsageError(f"{arg('layers')} does not apply to the pooling {pooling}, which chooses its own: leave it out")
    if model.sentence_statistics is None:
        raise UsageError(
            f"the pooling {pooling} needs statistics of text, which this model lacks: call model.fit_pooling(sentences) "
            f"with a few thousand sentences, or use {arg('pooling', 'mean')}"
        )
    vocabulary = model.sentence_statistics.words if model.vocabulary is None else model.vocabulary
    assert vocabulary is not None
    return SentencePooler(model.sentence_statistics, vocabulary, context=pooling == "sif+mean")


def chunks_by_words(texts: Sequence[list[str]], words: int) -> Iterator[list[list[str]]]:
    """Yield the texts in order, in lists of about so many words together."""
    chunk: list[list[str]] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text) + 1
        if size >= words:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
