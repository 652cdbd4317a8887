"""Flair: vectors of words in context as `TokenEmbeddings` (extra `flair`).

    from flair.data import Sentence
    from polyseme.integrations.flair import PolysemeEmbeddings
    PolysemeEmbeddings("en").embed(Sentence("They sat on the bank ."))

They are frozen, stack with all other embeddings of Flair (`StackedEmbeddings`), and feed its taggers and classifiers. A saved
tagger has the name and the hash of the model, not its weights. Flair needs transformers 4, so it lives in an environment
without `polyseme.integrations.transformers`, which needs 5.
"""

from __future__ import annotations

from typing import Any, Self

import torch

from polyseme.base.errors import MissingExtraError
from polyseme.encoders.base import Encoder
from polyseme.encoders.layer_choice import LayerChoice, select_layers
from polyseme.integrations.model_reference import AnyModel, ModelReference, shared_model

try:
    import flair
    from flair.data import Sentence
    from flair.embeddings import TokenEmbeddings
    from flair.embeddings.base import register_embeddings
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.flair needs Flair", "flair") from error


@register_embeddings
class PolysemeEmbeddings(TokenEmbeddings):
    """The vectors of `Encoder.embed`; several layers are concatenated."""

    def __init__(self, model: AnyModel = "en", *, layers: LayerChoice = "mean", name: str | None = None) -> None:
        reference = ModelReference.of(model)
        self.name = name or f"polyseme-{reference.name}-{layers}"  # the base class has to find it
        self.static_embeddings = True
        super().__init__()
        self.reference, self.layers = reference, layers
        self._held = [shared_model(model)]  # in a list: its weights are not among those that Flair trains and saves
        self.eval()

    @property
    def encoder(self) -> Encoder:
        """The model."""
        return self._held[0]

    @property
    def embedding_length(self) -> int:
        """Size of a vector."""
        model = self.encoder
        return model.dim * len(select_layers(self.layers, model.layers).stack(torch.zeros(model.layers, 1)))

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        texts = [[token.text for token in sentence] for sentence in sentences]
        for sentence, array in zip(sentences, self.encoder.embed(texts, layers=self.layers), strict=True):
            vectors = torch.from_numpy(array).to(flair.device)
            rows = vectors if vectors.ndim == 2 else vectors.transpose(0, 1).flatten(1)  # (tokens, layers * dim)
            for token, row in zip(sentence, rows, strict=True):
                token.set_embedding(self.name, row)

    def to_params(self) -> dict[str, Any]:
        """What a saved model of Flair keeps: the name and the hash of the model."""
        own = {"model": self.reference.name, "sha256": self.reference.sha256}
        return {**own, "layers": self.layers, "name": self.name}

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> Self:
        """Load the model again; another one of that name is an error."""
        model = ModelReference(params["model"], params["sha256"]).load()
        embeddings = cls(model, layers=params["layers"], name=params["name"])
        embeddings.reference = ModelReference(params["model"], params["sha256"])
        return embeddings

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._held = [self.reference.load()]

    def __str__(self) -> str:
        return self.name
