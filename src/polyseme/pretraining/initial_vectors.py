"""A word table that starts from vectors trained before, instead of from random numbers."""

from __future__ import annotations

import torch

from polyseme.base.errors import PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.text.word_vectors import WordVectors


def initialize_word_table(model: Elmo, vectors: WordVectors) -> None:
    """Put vectors into the model's word table; all other rows are random, as far apart as the found ones are."""
    table = model.tokens.words
    assert table is not None and model.vocabulary is not None
    if not vectors.words:
        raise PolysemeError(
            f"none of the {len(model.vocabulary):,} words of the vocabulary is among the {vectors.total:,} vectors: "
            "are they of another language, or is the text split in another way?"
        )
    found = torch.from_numpy(vectors.vectors)
    rows = torch.from_numpy(model.vocabulary.ids(vectors.words))
    with torch.no_grad():
        table.weight.normal_(std=float(found.std(correction=0)))
        table.weight[rows] = found.to(table.weight)
