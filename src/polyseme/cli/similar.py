"""`polyseme similar` and `polyseme analogy`: words by themselves."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Device, Json, Model, Options, VocabularyFile, open_model

WordArgument = Annotated[str, typer.Argument(metavar="WORD", help="The word to look at.")]
First = Annotated[str, typer.Argument(metavar="A", help="A is to B ...")]
Second = Annotated[str, typer.Argument(metavar="B", help="... as")]
Third = Annotated[str, typer.Argument(metavar="C", help="C is to the answer.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many words to show.")]


def similar(
    word: WordArgument,
    count: Count = 10,
    model: Model = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
) -> None:
    """Find the words nearest to a word by itself, by the cosine.

    Of a table (word2vec, GloVe, fastText) all words are looked at; of a model that reads sentences, the words of its
    vocabulary by layer 0, which knows no sentence. `polyseme neighbours` looks at words in context.

    Example:

        polyseme similar river --model my-vectors
    """
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device)
    from polyseme.analysis.words import WordSpace

    show.result(WordSpace(loaded).similar(word, count), json)


def analogy(
    first: First,
    second: Second,
    third: Third,
    count: Count = 5,
    model: Model = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
) -> None:
    """Find the word that is to C as B is to A: the nearest to B - A + C, other than those three.

    Example:

        polyseme analogy man king woman --model my-vectors
    """
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device)
    from polyseme.analysis.words import WordSpace

    show.result(WordSpace(loaded).analogy(first, second, third, count), json)
