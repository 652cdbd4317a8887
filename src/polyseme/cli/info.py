"""`polyseme info`: what a model is."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Json, ModelArgument, Options, VocabularyFile, open_model

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
    from polyseme.formats.info import info as describe

    found = describe(open_model(model, options=options, vocabulary=vocabulary), card=card)
    show.as_json(found.to_json(), indent=2) if json else show.line(str(found))
