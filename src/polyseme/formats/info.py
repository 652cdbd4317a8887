"""What a model is: its format, sizes, splitter, licence and card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.card import licence_of
from polyseme.base.display import html_table, named_values
from polyseme.base.files import archive_names
from polyseme.encoders.base import Encoder
from polyseme.encoders.folder import is_folder
from polyseme.formats import allennlp, hdf5, manylangs, tf_checkpoint
from polyseme.formats.load import as_encoder, model_path
from polyseme.formats.pickles import is_torch_file

_BY_KIND = {"bert": "transformers", "gpt": "transformers", "flair": "Flair", "ngram": "ARPA"}
_BY_KIND["word2vec"] = "word vectors (word2vec, GloVe)"


@dataclass(frozen=True)
class ModelInfo:
    """The facts about a model."""

    facts: dict[str, Any]
    card: str | None
    show_card: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; `card` is the text if it was asked for, else whether there is one."""
        return {**self.facts, "card": self.card if self.show_card else self.card is not None}

    def __str__(self) -> str:
        shown = {**self.facts, "licence": self.facts["licence"] or "not stated", "card": self.card is not None}
        card = "\n\n" + (self.card or "This model has no card.").rstrip() if self.show_card else ""
        return named_values(shown) + card

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in self.facts.items() if value is not None]
        return html_table(["", self.facts["name"]], rows)


def info(model: str | Path | Encoder, *, card: bool = False) -> ModelInfo:
    """Describe a model; `card` shows its model card too.

    >>> polyseme.info("en").facts["layers"]   # doctest: +SKIP
    3
    """
    encoder = as_encoder(model)
    path = model_path(encoder)
    output = getattr(encoder, "output", None)
    facts = {
        "name": Path(encoder.source or "").name,
        "source": encoder.source,
        "format": _format(path, encoder),
        "assumed": encoder.assumed,
        "bytes": _size(path),
        **encoder.info(),
        "output_parameters": None if output is None else sum(value.numel() for value in output.parameters()),
        "licence": licence_of(encoder.card),
    }
    return ModelInfo(facts, encoder.card, card)


def _format(path: Path, model: Encoder) -> str:
    if path.is_dir() and is_folder(path):
        return "polyseme"
    if model.kind in _BY_KIND:
        return _BY_KIND[model.kind]
    if path.is_file() and is_torch_file(path):
        return "AllenNLP"
    if path.is_file() and (hdf5.is_hdf5(path) or tf_checkpoint.is_checkpoint(path)):
        names = {path.name}
    else:
        names = {file.name for file in path.iterdir()} if path.is_dir() else {Path(name).name for name in archive_names(path)}
    if manylangs.ENCODER in names:
        return "ELMoForManyLangs"
    if names & set(allennlp.WEIGHTS):
        return "AllenNLP"
    if "model.safetensors" in names:
        return "polyseme"
    return f"bilm-tf ({'TensorFlow checkpoint' if any(name.endswith(tf_checkpoint.INDEX) for name in names) else 'HDF5'})"


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
