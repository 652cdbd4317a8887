"""`polyseme probe`: what each layer of a model knows."""

from __future__ import annotations

from pathlib import Path
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
    SplitterOption,
    VocabularyFile,
    open_model,
)

probe = typer.Typer(help="Measure what each layer of a model knows, on labelled data.", no_args_is_help=True)

_DATA = "plain, gzip or xz"
Train = Annotated[Path, typer.Option("--train", metavar="FILE", help=f"Sentences to learn from, {_DATA}.", show_default=False)]
Test = Annotated[Path, typer.Option("--test", metavar="FILE", help=f"Sentences to be judged on, {_DATA}.", show_default=False)]
SeveralTrain = Annotated[
    list[str],
    typer.Option("--train", metavar="FILE", help="Files to learn from: give it again, or a quoted glob.", show_default=False),
]
Dev = Annotated[Path, typer.Option("--dev", metavar="FILE", help="Pairs to choose thresholds on.", show_default=False)]
TestPairs = Annotated[Path, typer.Option("--test", metavar="FILE", help="Pairs to be judged on.", show_default=False)]
DevGold = Annotated[Path | None, typer.Option("--dev-gold", metavar="FILE", help="Answers, where not beside --dev.")]
TestGold = Annotated[Path | None, typer.Option("--test-gold", metavar="FILE", help="Answers, where not beside --test.")]
Pairs = Annotated[Path, typer.Argument(metavar="FILE", help="Pairs of words in context with their scores.")]
ScoredWords = Annotated[Path, typer.Argument(metavar="FILE", help=f"Pairs of words with their scores, {_DATA}.")]
Questions = Annotated[Path, typer.Argument(metavar="FILE", help=f"Analogies, four words a line, {_DATA}.")]
ColumnOption = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="COLUMN",
        help="Where the tags stand: a number from 0 (-1 is the last), in CoNLL-U also a name. Not given: upos, or the last.",
    ),
]
Resplit = Annotated[
    bool,
    typer.Option(
        "--resplit", help="Let the model split the text in its own way; for data cut otherwise, as Chinese characters."
    ),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the scores: .png, .svg or .pdf.")]
Seed = Annotated[int, typer.Option("--seed", help="Order in which the probes learn.")]


@probe.command()
def tags(
    train: Train,
    test: Test,
    column: ColumnOption = None,
    resplit: Resplit = False,
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    seed: Seed = 0,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Parts of speech, names, any tags of words: a linear probe on each layer.

    One softmax layer is trained on each layer's frozen vectors, and one on their learned mix. Reads CoNLL columns, BMES
    and CoNLL-U. Tags of spans (B-PER, I-PER) are scored by the F1 of whole spans as well. The baseline gives every word
    its most frequent tag.

    Example:

        polyseme probe tags --train train.conllu --test test.conllu --column upos
    """
    from polyseme.analysis import probe as probes
    from polyseme.analysis.probe_config import ProbeConfig

    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    config = ProbeConfig(seed=seed)
    found = probes.tags(loaded, train=train, test=test, column=_column(column), resplit=resplit, plot=plot, config=config)
    show.result(found, json)


@probe.command()
def senses(
    train: SeveralTrain,
    test: Test,
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Which sense a word has: the nearest sense in training, for each layer.

    Reads JSON lines of sentences whose words carry WordNet synsets. The baseline is the most frequent sense in training.
    The words seen are those whose lemma training has; among all words the others count as wrong.

    Example:

        polyseme probe senses --train "semcor*.jsonl.gz" --test senseval2.jsonl.gz
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    show.result(probes.senses(loaded, train=train, test=test, plot=plot), json)


@probe.command()
def wic(
    dev: Dev,
    test: TestPairs,
    dev_gold: DevGold = None,
    test_gold: TestGold = None,
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Whether a word has the same sense in two sentences: a threshold on the cosine, for each layer.

    Reads the files of WiC: lines of word, part of speech, i-j and two sentences; and T or F in a file beside. The
    threshold of each layer is the best one on dev.

    Example:

        polyseme probe wic --dev dev.data.txt --test test.data.txt
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    found = probes.wic(loaded, dev=dev, test=test, dev_gold=dev_gold, test_gold=test_gold, plot=plot)
    show.result(found, json)


@probe.command()
def similarity(
    file: Pairs,
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """How similar two words are in their sentences: each layer's cosine against people's scores.

    Reads columns divided by tabs, with the header word1 index1 sentence1 word2 index2 sentence2 score; sentences are
    divided into words by blanks, and an index is the place of the word, from 0.

    Example:

        polyseme probe similarity pairs.tsv
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    show.result(probes.similarity(file, loaded, plot=plot), json)


@probe.command()
def words(
    file: ScoredWords,
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """How similar two words are by themselves: the cosine against people's scores (WordSim-353, SimLex-999).

    Reads lines of two words and a score. Each word is read alone; pairs with a word that the model does not know are left
    out, and counted.

    Example:

        polyseme probe words wordsim353.tsv --model my-vectors
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    show.result(probes.words(file, loaded, plot=plot), json)


@probe.command()
def analogies(
    file: Questions,
    model: Model = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    device: Device = None,
) -> None:
    """Analogies (Athens : Greece = Baghdad : ?): how many a model solves by the nearest word to B - A + C.

    Reads lines of four words, under lines `: section` where there are sections (Google's questions-words.txt). A table is
    asked as it is; of a model that reads sentences, layer 0. Questions with unknown words are left out, and counted.

    Example:

        polyseme probe analogies questions-words.txt --model my-vectors
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device)
    show.result(probes.analogies(file, loaded), json)


@probe.command()
def samples(
    model: Model = None,
    plot: Plot = None,
    json: Json = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
    precision: PrecisionOption = Precision.fp32,
) -> None:
    """Whether the senses of words part company in the sample sentences of the package, English or Chinese by the model.

    For each place of a word, whether the nearest other place of the same word has the same sense; below the table, the
    share for each word by the top layer.

    Example:

        polyseme probe samples
    """
    from polyseme.analysis import probe as probes

    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    show.result(probes.samples(loaded, plot=plot), json)


def _column(text: str | None) -> int | str | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return text
