"""`polyseme probe`: what each layer of a model knows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from polyseme.analysis.analogies import AnalogyScores
    from polyseme.analysis.probe_result import ProbeResult

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
    _check_plot(plot)
    from polyseme.text.labelled.conll import read_conll

    wanted = _column(column)
    learned, judged = read_conll(train, column=wanted), read_conll(test, column=wanted)
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    from polyseme.analysis.linear_probe import ProbeConfig
    from polyseme.analysis.tags import probe_tags

    _show(probe_tags(loaded, learned, judged, resplit=resplit, config=ProbeConfig(seed=seed)), plot, json)


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
    _check_plot(plot)
    from polyseme.analysis.sense_data import read_senses
    from polyseme.text.files.sources import Source

    learned = [sentence for file in Source(train).files for sentence in read_senses(file.path)]
    judged = read_senses(test)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    from polyseme.analysis.senses import probe_senses

    _show(probe_senses(loaded, learned, judged), plot, json)


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
    _check_plot(plot)
    from polyseme.analysis.word_in_context import probe_word_in_context, read_wic

    chosen_on, judged = read_wic(dev, dev_gold), read_wic(test, test_gold)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    _show(probe_word_in_context(loaded, chosen_on, judged), plot, json)


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
    _check_plot(plot)
    from polyseme.analysis.similarity import probe_similarity, read_similarities

    data = read_similarities(file)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    _show(probe_similarity(loaded, data), plot, json)


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
    _check_plot(plot)
    from polyseme.analysis.word_similarity import probe_words, read_scored_pairs

    data = read_scored_pairs(file)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device, precision=precision)
    _show(probe_words(loaded, data), plot, json)


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
    from polyseme.analysis.analogies import probe_analogies, read_analogies

    sections = read_analogies(file)
    loaded = open_model(model, options=options, vocabulary=vocabulary, device=device)
    from polyseme.analysis.words import WordSpace

    _show_analogies(probe_analogies(WordSpace(loaded), sections), json)


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
    _check_plot(plot)
    loaded = open_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device, precision=precision)
    from polyseme.analysis.sample_senses import probe_samples
    from polyseme.analysis.samples import language_of
    from polyseme.analysis.samples import samples as shipped

    _show(probe_samples(loaded, shipped(language_of(loaded))), plot, json)


def _column(text: str | None) -> int | str | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return text


def _check_plot(path: Path | None) -> None:
    if path is not None:
        from polyseme.analysis.plots import check_plot

        check_plot(path)


def _show(table: ProbeResult, path: Path | None, json: bool) -> None:
    if path is not None:
        from polyseme.analysis.plots import plot

        plot(table, path)
    if json:
        show.as_json(table.to_dict())
        return
    rows = {**table.rows, **table.baselines}
    width = max(map(len, rows))
    show.line(table.title)
    wide = {measure: max(len(measure) + 2, 12) for measure in table.measures}
    show.line(" " * width + "".join(f"{measure:>{wide[measure]}}" for measure in table.measures))
    for name, row in rows.items():
        values = {measure: row.get(measure, math.nan) for measure in table.measures}
        cells = (f"{'' if math.isnan(value) else f'{value:.4f}':>{wide[measure]}}" for measure, value in values.items())
        mark = "  best" if name == table.best and len(table.rows) > 1 else ""
        show.line(f"{name:{width}}" + "".join(cells) + mark)
    show.line()
    show.facts(table.facts)


def _show_analogies(found: AnalogyScores, json: bool) -> None:
    rows = {**found.sections, "all": found.total}
    if json:
        sections = {name: each.to_dict() for name, each in found.sections.items()}
        show.as_json({"all": found.total.to_dict(), "sections": sections, "unknown_words": len(found.unknown)})
        return
    width = max(map(len, rows))
    show.line(f"{'':{width}}{'accuracy':>12}{'right':>9}{'asked':>9}{'left out':>10}")
    for name, each in rows.items():
        accuracy = "" if each.accuracy is None else f"{each.accuracy:.4f}"
        show.line(f"{name:{width}}{accuracy:>12}{each.right:>9,}{each.asked:>9,}{each.left_out:>10,}")
    if found.unknown:
        show.line(f"\n{show.count(len(found.unknown), 'word')} unknown, such as {', '.join(found.unknown[:5])}")
