"""Flair's `ELMoEmbeddings`, which it removed in 0.12: vectors of words on Flair's sentences.

A `TokenEmbeddings` of the installed Flair, so that it stacks with other embeddings. Stateful, as it was, after one sentence
("hello"); `stateful=False` makes sentences independent of each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.compat.elmo_embedder import ElmoEmbedder
from polyseme.compat.weights import published

try:
    _Base: Any = importlib.import_module("flair.embeddings").TokenEmbeddings
except ImportError:  # sentences of the same form work without it
    _Base = nn.Module

_MODES = ("all", "top", "average")


class ELMoEmbeddings(_Base):
    """ELMo for Flair: all layers of a word concatenated ("all"), the top one, or their average.

    `model`: small, medium, original, large, pt or pubmed, which are downloaded, or give the two files.
    """

    def __init__(
        self,
        model: str = "original",
        options_file: str | Path | None = None,
        weight_file: str | Path | None = None,
        embedding_mode: Literal["all", "top", "average"] = "all",
        *,
        stateful: bool = True,
    ) -> None:
        if embedding_mode not in _MODES:
            raise UsageError(f"embedding_mode is {embedding_mode!r}; allowed: {', '.join(_MODES)}")
        self.name, self.static_embeddings = f"elmo-{model}-{embedding_mode}", True  # the base class asks for them
        super().__init__()
        self.embedding_mode = embedding_mode
        options, weights = (options_file, weight_file) if options_file and weight_file else published(model)
        device = _device()
        self.ee = ElmoEmbedder(options, weights, -1 if device.type != "cuda" else device.index or 0, stateful=stateful)
        layers = self.ee.embed_sentence(["hello"])
        self._length = len(layers) * layers.shape[2] if embedding_mode == "all" else layers.shape[2]

    @property
    def embedding_length(self) -> int:
        return int(self._length)

    def embed(self, data_points: Any) -> Any:
        """Set the vectors of the tokens of a sentence, or of a list of them; returns the sentences."""
        if hasattr(super(), "embed"):
            return super().embed(data_points)
        return self._add_embeddings_internal(data_points if isinstance(data_points, list) else [data_points])

    def _add_embeddings_internal(self, sentences: Sequence[Any]) -> Sequence[Any]:
        arrays = self.ee.embed_batch([[token.text for token in sentence.tokens] for sentence in sentences])
        for sentence, array in zip(sentences, arrays, strict=True):
            for place, token in enumerate(sentence.tokens):
                token.set_embedding(self.name, self._of_layers(torch.from_numpy(array[:, place])))
        return sentences

    def _of_layers(self, layers: Tensor) -> Tensor:
        """(layers, dim) -> (embedding_length,), on Flair's device."""
        mode = self.embedding_mode
        vector = layers.flatten() if mode == "all" else layers[-1] if mode == "top" else layers.mean(0)
        return vector.to(_device())

    def extra_repr(self) -> str:
        return f"model={self.name}"

    def __str__(self) -> str:
        return str(self.name)


def _device() -> torch.device:
    """Flair's device, where it is installed."""
    if _Base is nn.Module:
        return torch.device("cpu")
    import flair

    return torch.device(flair.device)
