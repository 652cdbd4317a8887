"""`polyseme info`: what a model is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import show
from polyseme.cli.options import Json, ModelArgument, Options, VocabularyFile, open_model

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder

Card = Annotated[bool, typer.Option("--card", help="Show the model card (README.md) too.")]


def info(
    model: ModelArgument,
    card: Card = False,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
) -> None:
    """Show what a model is: its format, sizes, alphabet, splitter, licence and card.

    Example:

        polyseme info my-model
    """
    loaded = open_model(model, options=options, vocabulary=vocabulary)
    facts = _facts(model, loaded)
    if json:
        show.as_json(facts | {"card": loaded.card if card else facts["card"]}, indent=2)
        return
    show.facts(facts | {"licence": facts["licence"] or "not stated"})
    if card:
        show.line()
        show.line((loaded.card or "This model has no card.").rstrip())


def _facts(name: str, model: Encoder) -> dict[str, Any]:
    from polyseme.base.card import licence_of
    from polyseme.encoders.shipped import resolve_path

    place = resolve_path(name)
    facts = model.info()
    layer = getattr(model, "output", None)
    output = sum(value.numel() for value in layer.parameters()) if layer is not None else None
    return {
        "name": Path(name).name,
        "source": model.source,
        "format": _format(place, model),
        "bytes": _bytes(place),
        **facts,
        "output_parameters": output,
        "licence": licence_of(model.card),
        "card": model.card is not None,
    }


def _format(place: Path, model: Encoder) -> str:
    from polyseme.encoders.folder import is_folder
    from polyseme.formats import allennlp, hdf5, manylangs

    if place.is_dir() and is_folder(place):
        return "polyseme"
    if model.kind in ("bert", "gpt"):
        return "transformers"
    if model.kind == "ngram":
        return "ARPA"
    if model.kind == "word2vec":
        return "word vectors (word2vec, GloVe)"
    if not place.is_dir():
        return "bilm-tf (HDF5)" if hdf5.is_hdf5(place) else "archive or state dict (AllenNLP, ELMoForManyLangs, bilm-tf)"
    names = {path.name for path in place.iterdir()}
    if manylangs.ENCODER in names:
        return "ELMoForManyLangs"
    return "AllenNLP" if names & set(allennlp.WEIGHTS) else "bilm-tf (HDF5)"


def _bytes(place: Path) -> int:
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files)
