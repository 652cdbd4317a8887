"""`polyseme similar` and `polyseme analogy`: words by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Device, Json, Model, Options, VocabularyFile, open_model

if TYPE_CHECKING:
    from polyseme.encoders.word2vec import Similar

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

    _show(WordSpace(loaded).similar(word, count), json, {"word": word})


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

    _show(WordSpace(loaded).analogy(first, second, third, count), json, {"words": [first, second, third]})


def _show(found: list[Similar], json: bool, asked: dict[str, object]) -> None:
    if json:
        show.as_json({**asked, "similar": [{"word": each.word, "cosine": each.cosine} for each in found]})
        return
    for each in found:
        show.line(f" {each.cosine:6.3f}  {show.short(each.word)}")
