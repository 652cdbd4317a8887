"""Probes: measure what each layer of a model knows, on labelled data.

Each function reads its files before it loads the model.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import AnyCorpus, FilePath, Model, ModelForText, Plot
from polyseme.api.models import loaded
from polyseme.api.settings import with_settings
from polyseme.api.texts import model_for_words
from polyseme.base.config import Setting
from polyseme.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from polyseme.analysis.analogies import AnalogyScores
    from polyseme.analysis.config import ProbeConfig
    from polyseme.analysis.probe_result import ProbeResult


def parse_column(text: str) -> int | str:
    """The number or the name of a column.

    >>> parse_column("-1"), parse_column("upos")
    (-1, 'upos')
    """
    return int(text) if text.lstrip("-").isdecimal() else text


_PLAIN = "plain, gzip or xz"
ProbeName = Literal["tags", "senses", "wic", "similarity", "words", "analogies", "samples"]
TrainFile = Annotated[FilePath, Setting(help=f"Sentences to train on, {_PLAIN}.", metavar="FILE")]
TrainFiles = Annotated[
    AnyCorpus, Setting(help="Sentences to train on: files (may be repeated) or a quoted glob.", metavar="FILE")
]
TestFile = Annotated[FilePath, Setting(help=f"Sentences to test on, {_PLAIN}.", metavar="FILE")]
DevPairs = Annotated[FilePath, Setting(help="Pairs to choose thresholds on.", metavar="FILE")]
TestPairs = Annotated[FilePath, Setting(help="Pairs to test on.", metavar="FILE")]
GoldFile = Annotated[
    FilePath | None, Setting(help="The correct answers, if they are not in a file beside the pairs.", metavar="FILE")
]
PairsFile = Annotated[FilePath, Setting(help=f"Pairs with their scores, {_PLAIN}.", metavar="FILE")]
QuestionsFile = Annotated[FilePath, Setting(help=f"Analogies, four words per line, {_PLAIN}.", metavar="FILE")]
Column = Annotated[
    int | str | None,
    Setting(
        help="Column of the tags: a number from 0 (-1: the last), or in CoNLL-U a name.",
        metavar="COLUMN",
        default_text="upos in CoNLL-U, else the last",
        parse=parse_column,
    ),
]
Resplit = Annotated[
    bool,
    Setting(help="Let the model split the text itself: for data that is tokenized differently, such as Chinese characters."),
]


@with_settings(config="polyseme.analysis.config:ProbeConfig")
def tags(
    *,
    train: TrainFile,
    test: TestFile,
    column: Column = None,
    resplit: Resplit = False,
    model: ModelForText = None,
    plot: Plot = None,
    config: ProbeConfig,
) -> ProbeResult:
    """Probe tags of words (parts of speech, names) with a linear classifier on each layer, and on their learned mix.

    Reads CoNLL columns, BMES and CoNLL-U. Tags of spans (B-PER, I-PER) are scored by the F1 of spans as well. The baseline
    gives every word its most frequent tag.
    """
    from polyseme.analysis.tags import probe_tags
    from polyseme.text.labelled.conll import read_conll

    _check(plot)
    data = read_conll(train, column=column), read_conll(test, column=column)
    return _plotted(
        probe_tags(model_for_words((each.words for each in data[0]), model), *data, resplit=resplit, config=config), plot
    )


def senses(*, train: TrainFiles, test: TestFile, model: ModelForText = None, plot: Plot = None) -> ProbeResult:
    """Probe word senses: give each word the nearest sense in the training data, by each layer.

    Reads JSON lines of sentences with WordNet synsets. The baseline is the most frequent sense in training. Seen words have a
    lemma that the training data has; among all words, the others count as wrong.
    """
    from polyseme.analysis.sense_data import read_senses
    from polyseme.analysis.senses import probe_senses
    from polyseme.text.files.sources import Source

    _check(plot)
    paths = [train] if isinstance(train, str | Path) else train
    files = Source([str(path) for path in paths]).files
    learned = [sentence for file in files for sentence in read_senses(file.path)]
    return _plotted(probe_senses(model_for_words((each.words for each in learned), model), learned, read_senses(test)), plot)


def wic(
    *,
    dev: DevPairs,
    test: TestPairs,
    dev_gold: GoldFile = None,
    test_gold: GoldFile = None,
    model: ModelForText = None,
    plot: Plot = None,
) -> ProbeResult:
    """Probe whether a word has the same sense in two sentences, by a threshold on the cosine of each layer.

    Reads the files of WiC: lines of word, part of speech, i-j and two sentences, and T or F in a second file. The threshold of
    each layer is the best one on dev.
    """
    from polyseme.analysis.word_in_context import probe_word_in_context, read_wic

    _check(plot)
    data = read_wic(dev, dev_gold), read_wic(test, test_gold)
    encoder = model_for_words((words for pair in data[0].pairs for words in pair.sentences), model)
    return _plotted(probe_word_in_context(encoder, *data), plot)


def similarity(file: PairsFile, *, model: ModelForText = None, plot: Plot = None) -> ProbeResult:
    """Probe the similarity of two words in their sentences: correlate the cosines of each layer with human scores.

    Reads tab-separated columns with the header word1 index1 sentence1 word2 index2 sentence2 score; sentences are split at
    spaces, and an index is the position of the word, from 0.
    """
    from polyseme.analysis.similarity import probe_similarity, read_similarities

    _check(plot)
    data = read_similarities(file)
    encoder = model_for_words((words for pair in data.pairs for words in pair.sentences), model)
    return _plotted(probe_similarity(encoder, data), plot)


def words(file: PairsFile, *, model: ModelForText = None, plot: Plot = None) -> ProbeResult:
    """Probe the similarity of two words without context: correlate cosines with human scores (WordSim-353, SimLex-999).

    Reads lines of two words and a score. Each word is embedded alone; pairs with a word that the model does not know are
    skipped and counted.
    """
    from polyseme.analysis.similarity import probe_words, read_scored_pairs

    _check(plot)
    data = read_scored_pairs(file)
    return _plotted(probe_words(model_for_words(data.pairs, model), data), plot)


def analogies(file: QuestionsFile, *, model: ModelForText = None) -> AnalogyScores:
    """Probe analogies (Athens : Greece = Baghdad : ?): count those that the word nearest to B - A + C solves.

    Reads lines of four words, under lines `: section` if there are sections (Google's questions-words.txt). Uses the vectors of
    words out of context. Questions with unknown words are skipped and counted.
    """
    from polyseme.analysis.analogies import probe_analogies, read_analogies
    from polyseme.analysis.words import WordSpace

    sections = read_analogies(file)
    return probe_analogies(WordSpace(model_for_words(itertools.chain(*sections.values()), model)), sections)


def samples(*, model: Model = "en", plot: Plot = None) -> ProbeResult:
    """Probe the senses of ambiguous words in the sample sentences of the package, in the language of the model.

    Measures, by each layer, how often the nearest other use of a word has the same sense, and how often that of the nearest
    centroid, the mean of a sense's other uses, is right. Below the table stands the share of the first for each word by the
    last row.
    """
    from polyseme.analysis import samples as sentences
    from polyseme.analysis.sample_senses import probe_samples

    _check(plot)
    encoder = loaded(model)
    return _plotted(probe_samples(encoder, sentences.samples(sentences.language_of(encoder))), plot)


def _check(plot: FilePath | None) -> None:
    """Raise if a plot could not be written, before any work."""
    if plot is not None:
        from polyseme.analysis.plots import check_plot

        check_plot(plot)


def _plotted(result: ProbeResult, plot: FilePath | None) -> ProbeResult:
    if plot is not None:
        result.plot(plot)
    return result


PROBES = {each.__name__: each for each in (tags, senses, wic, similarity, words, analogies, samples)}
"""By name, as in `polyseme probe NAME`."""


def probe(kind: ProbeName, *arguments: Any, **settings: Any) -> ProbeResult | AnalogyScores:
    """Measure what each layer of a model knows: tags, senses, wic, similarity, words, analogies or samples.

    >>> import polyseme                                                                  # doctest: +SKIP
    >>> polyseme.probe("tags", train="train.conllu", test="test.conllu", column="upos")  # doctest: +SKIP
    >>> polyseme.probe("words", "wordsim353.tsv", model="my-vectors")                    # doctest: +SKIP
    """
    if kind not in PROBES:
        raise UsageError(f"there is no probe called {kind!r}{nearest(kind, PROBES)}")
    return PROBES[kind](*arguments, **settings)
