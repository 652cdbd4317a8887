"""`polyseme neighbours`: the words nearest to a word in its sentence."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.progress import progress
from polyseme.cli import show
from polyseme.cli.concordance import concordance, joined
from polyseme.cli.options import Device, Json, Model, Options, SplitterOption, VocabularyFile, open_model
from polyseme.cli.places import find_place
from polyseme.cli.text_options import Field, OwnSentences, Sentences, open_corpus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polyseme.analysis.index import ContextLayer, Index
    from polyseme.analysis.neighbours import Neighbours
    from polyseme.encoders.base import Encoder, Sentence

_TEXT = "Text"
_LONGEST = 16  # columns of a word in a table

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
    if same_word and other_words:
        raise UsageError("--same-word and --other-words leave nothing to look among: give one of them, or none")
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    from polyseme.analysis.index import DEFAULT_LAYER, context_layers
    from polyseme.analysis.neighbours import neighbours as find

    chosen = DEFAULT_LAYER if layer is None else _layer(layer)
    context = loaded.layers > 1 or not loaded.has_own_vectors
    if not context and (same_word or other_words or layer is not None):
        raise UsageError(
            f"--layer, --same-word and --other-words are about words in context, and a {loaded.kind} has one layer, "
            "which knows no sentence: leave them out to see the words nearest to the word's own vector"
        )
    context_layers(chosen, loaded.layers)  # a wrong layer or place is told before the text is read
    words = loaded.words(sentence)
    place = find_place(sentence, words, word, position)
    if not 0 <= place < len(words):
        raise UsageError(f"position is {place}; the sentence has {show.count(len(words), 'word')}, counted from 0")
    searched = _index(loaded, _text(loaded, corpus, sentences, field), index, chosen)
    limit = True if same_word else False if other_words else None
    found = find(loaded, searched, words, place, count, same_word=limit)
    if not context:
        if not found.known:
            told = f"the model does not know the word {words[place]!r}"
            raise PolysemeError(f"{told}: ask about another one, or a model that reads characters")
        found = replace(found, in_context=[])
    if json:
        _as_json(found, searched)
    else:
        _show(found, searched, limit, context=context, own=loaded.has_own_vectors)


def _layer(text: str) -> ContextLayer:
    if text in ("top", "mean"):
        return text  # type: ignore[return-value]
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--layer is {text!r}; allowed: top, mean, or the number of a layer") from None


def _text(model: Encoder, corpus: list[str] | None, sentences: Sentences | None, field: str | None) -> Iterable[Sentence]:
    """The sentences to look at: the user's, split as the model splits, or our samples."""
    if not corpus:
        from polyseme.analysis.samples import language_of, samples

        return [sample.sentence for sample in samples(language_of(model))]
    return open_corpus(corpus, model.splitter, sentences, field)


def _index(model: Encoder, text: Iterable[Sentence], folder: Path | None, layer: ContextLayer) -> Index:
    from polyseme.analysis.index import Index

    before = set(folder.glob("index-*")) if folder is not None else set()
    with progress("embedding", unit="sentences") as advance:
        index = Index.build(model, text, folder, advance, layer=layer)
    if index.folder is not None and index.folder not in before:
        size = sum(file.stat().st_size for file in index.folder.iterdir())
        show.note(f"kept {show.count(len(index), 'word')} in {index.folder} ({size / 1e6:,.1f} MB)")
    return index


def _as_json(found: Neighbours, index: Index) -> None:
    in_context = [
        {"word": each.word, "cosine": each.cosine, "words": each.sentence, "position": each.position}
        for each in found.in_context
    ]
    by_itself = [{"word": each.word, "cosine": each.cosine, "count": each.count} for each in found.static]
    layers = list(range(index.layers.start, index.layers.stop))
    answer = {"words": found.words, "position": found.position, "layers": layers}
    show.as_json({**answer, "in_context": in_context, "by_itself": by_itself})


def _show(found: Neighbours, index: Index, same_word: bool | None, *, context: bool, own: bool) -> None:
    width = shutil.get_terminal_size((100, 24)).columns
    show.line(show.short(joined(found.words, mark=found.position), width))
    show.line()
    where = f"{show.count(len(index), 'word')} in {show.count(index.manifest.sentences, 'sentence')}"
    words = [each.word for each in found.in_context] + [each.word for each in found.static]
    column = _width([show.short(word, _LONGEST) for word in words])
    if context:
        show.line(f"in context ({index.layer}; {where})")
        if not found.in_context:
            what = "other places of this word" if same_word else "other words"
            show.line(f"  none: the text has no {what}")
        lines = concordance([(each.sentence, each.position) for each in found.in_context], width - column - 11)
        for each, line in zip(found.in_context, lines, strict=True):
            show.line(f"{_start(each.cosine, each.word, column)}  {line}")
    if context and own:
        show.line()
    if own:
        show.line("by its own vector alone (layer 0)" if context else f"by its own vector alone ({where})")
        if not found.known:
            show.line("  none: the model does not know the word, and has one vector for all such words")
        for alone in found.static:
            show.line(f"{_start(alone.cosine, alone.word, column)}  {show.count(alone.count, 'time')}")


def _start(cosine: float, word: str, column: int) -> str:
    return f" {cosine:6.3f}  {show.padded(show.short(word, _LONGEST), column)}"


def _width(texts: list[str]) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, texts), default=0)
