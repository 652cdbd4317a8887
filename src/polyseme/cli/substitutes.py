"""`polyseme substitutes`: which words could stand in a place."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import (
    Device,
    Json,
    Model,
    Options,
    Precision,
    PrecisionOption,
    SplitOnSpaces,
    SplitterOption,
    StartOption,
    VocabularyFile,
    check_splitting,
    open_elmo,
)

Sentence = Annotated[str, typer.Argument(metavar="SENTENCE", help="A sentence, in quotes.")]
Word = Annotated[str | None, typer.Option("--word", "-w", metavar="WORD", help="The word to replace.")]
Position = Annotated[int | None, typer.Option("--position", "-p", metavar="N", help="Or its place in the sentence, from 0.")]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many words to show.")]


def substitutes(
    sentence: Sentence,
    word: Word = None,
    position: Position = None,
    count: Count = 10,
    model: Model = None,
    split_on_spaces: SplitOnSpaces = False,
    splitter: SplitterOption = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
    start: StartOption = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """List the words that fit best into a place of a sentence.

    The model looks at what stands before and after the place, and not at the word that stands there. It needs its
    output layer and vocabulary. The probabilities of all words of the vocabulary sum to 1.

    Example:

        polyseme substitutes "The bank of the river ." --word bank
    """
    check_splitting(split_on_spaces, splitter)
    loaded = open_elmo(model, options=options, vocabulary=vocabulary, device=device, precision=precision, splitter=splitter)
    given = sentence.split() if split_on_spaces else sentence
    found = loaded.substitutes(given, position, word=word, count=count, start=start.value if start else None)
    show.show_result(found, json=json)
