"""`polyseme neighbours`: the words nearest to a word in its sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.options import Device, Json, Model, Options, SplitterOption, VocabularyFile, open_model
from polyseme.cli.text_options import Field, OwnSentences

_TEXT = "Text"

SentenceArgument = Annotated[str, typer.Argument(metavar="SENTENCE", help="A sentence, in quotes.")]
Word = Annotated[str | None, typer.Option("--word", "-w", metavar="WORD", help="The word to look at.")]
Position = Annotated[int | None, typer.Option("--position", "-p", metavar="N", help="Or its place in the sentence, from 0.")]
CorpusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        "-c",
        metavar="SOURCE",
        help="Where to look: a text file, folder or glob (may be given again), or - for stdin. Not given: the sample "
        "sentences that come with the package.",
        rich_help_panel=_TEXT,
    ),
]
IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index",
        metavar="FOLDER",
        help="Keep the vectors of the text in this folder, and find them there the next time. Not given: they are in "
        "memory, and computed each time.",
        rich_help_panel=_TEXT,
    ),
]
Count = Annotated[int, typer.Option("--count", "-n", min=1, help="How many words to show.")]
LayerOption = Annotated[
    str | None,
    typer.Option("--layer", metavar="top|mean|N", help="The layer to compare, or the mean of all but 0. Not given: top."),
]
SameWord = Annotated[bool, typer.Option("--same-word", help="Look among other places of the same word: shows its senses.")]
OtherWords = Annotated[bool, typer.Option("--other-words", help="Look among other words only.")]


def neighbours(
    sentence: SentenceArgument,
    word: Word = None,
    position: Position = None,
    count: Count = 5,
    layer: LayerOption = None,
    same_word: SameWord = False,
    other_words: OtherWords = False,
    model: Model = None,
    json: Json = False,
    corpus: CorpusOption = None,
    sentences: OwnSentences = None,
    field: Field = None,
    index: IndexOption = None,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
) -> None:
    """Find the words in a text that are nearest to a word in its sentence.

    Beside them stand the words nearest to the word's own vector (layer 0), which knows no sentence and mixes all senses.
    A model of one layer (word2vec, GloVe) has only these, a taglm or an ngram model none of them.

    Examples:

        polyseme neighbours "We sat on the bank of the river." --word bank

        polyseme neighbours "We sat on the bank of the river." --word bank --corpus news.txt --index kept
    """
    from polyseme.analysis.neighbours import neighbours as find
    from polyseme.analysis.neighbours_config import NeighboursConfig, parse_layer

    config = NeighboursConfig(
        count=count,
        layer=None if layer is None else parse_layer(layer),
        same_word=same_word,
        other_words=other_words,
        sentences=None if sentences is None else sentences.value,
        field=field,
    )
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    show.result(find(loaded, sentence, word=word, position=position, corpus=corpus, index=index, config=config), json)
