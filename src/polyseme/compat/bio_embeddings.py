"""SeqVec as in bio_embeddings: `SeqVecEmbedder().embed(sequence)`, and SeqVec's own way of one vector per protein.

A protein is a sentence whose words are its amino acids. The model is stateful and warmed up on one protein, as it was;
`warmup_rounds=0, stateful=False` makes every embedding independent of the ones before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.base.errors import UsageError
from polyseme.compat.elmo_embedder import ElmoEmbedder

_WARM_UP = "MGSSHHHHHHSSGLVPRGSHMASVQKFPGDANCDGIVDISDAVLIMQTMANPSKYQMTDKGRINADVTGNSDGVTVLDAQFIQSYCLGLVELPPVE"  # T0922 of CASP
_PUBLISHED = "http://data.bioembeddings.com/public/embeddings/embedding_models/seqvec/"


class SeqVecEmbedder:
    """Vectors of amino acids, (layers, length, dim) per protein.

    Without files, the published ones are downloaded. Else give `weights_file` and `options_file`, or `model_directory`, which
    has files of these names or any other ELMo.
    """

    name, embedding_dimension, number_of_layers = "seqvec", 1024, 3

    def __init__(
        self, warmup_rounds: int = 4, device: str | torch.device | None = None, *, stateful: bool = True, **kwargs: Any
    ) -> None:
        weights, options = _files(kwargs)
        chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        cuda = -1 if chosen.type != "cuda" else chosen.index or 0
        self._model = ElmoEmbedder(options, weights, cuda, stateful=stateful)  # type: ignore[arg-type]
        self.warmup_rounds = warmup_rounds
        for _ in range(warmup_rounds):
            self.embed(_WARM_UP)

    def embed(self, sequence: str) -> np.ndarray:
        """Embed one protein: (layers, length, dim)."""
        return self._model.embed_sentence(sequence)

    def embed_batch(self, batch: list[str]) -> Iterator[np.ndarray]:
        """Embed proteins together."""
        yield from self._model.embed_batch(batch)

    def embed_many(self, sequences: Iterable[str], batch_size: int | None = None) -> Iterator[np.ndarray]:
        """Embed proteins one by one, or in batches of fewer than `batch_size` amino acids."""
        batch: list[str] = []
        for sequence in sequences:
            if batch_size is None or len(sequence) > batch_size:
                yield from self.embed_batch([sequence])
                continue
            if batch and sum(map(len, batch)) + len(sequence) >= batch_size:
                yield from self.embed_batch(batch)
                batch = []
            batch.append(sequence)
        if batch:
            yield from self.embed_batch(batch)

    @staticmethod
    def reduce_per_protein(embedding: np.ndarray) -> np.ndarray:
        """One vector per protein, (dim,): layers are added, amino acids averaged."""
        found: np.ndarray = embedding.sum(0).mean(0)
        return found


def _files(given: dict[str, Any]) -> tuple[str, str | None]:
    unknown = set(given) - {"weights_file", "options_file", "model_directory", "max_amino_acids"}
    if unknown:
        raise UsageError(
            f"unknown settings: {', '.join(sorted(unknown))}; allowed: weights_file, options_file, model_directory"
        )
    if folder := given.get("model_directory"):
        inside = Path(folder) / "weights_file"
        return (str(inside), str(Path(folder) / "options_file")) if inside.exists() else (str(folder), None)
    return str(given.get("weights_file") or f"{_PUBLISHED}weights.hdf5"), str(
        given.get("options_file") or f"{_PUBLISHED}options.json"
    )
