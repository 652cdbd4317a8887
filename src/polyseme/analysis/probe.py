"""Probes: measure what each layer of a model knows, on labelled data.

Each function reads its files before it loads the model, and returns a table of scores. `plot` draws the table into a png, svg
or pdf file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polyseme.analysis import samples as sample_sentences
from polyseme.analysis.analogies import AnalogyScores, probe_analogies, read_analogies
from polyseme.analysis.plots import check_plot
from polyseme.analysis.probe_config import ProbeConfig
from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.sample_senses import probe_samples
from polyseme.analysis.sense_data import read_senses
from polyseme.analysis.senses import probe_senses
from polyseme.analysis.similarity import probe_similarity, read_similarities
from polyseme.analysis.tags import probe_tags
from polyseme.analysis.word_in_context import probe_word_in_context, read_wic
from polyseme.analysis.word_similarity import probe_words, read_scored_pairs
from polyseme.analysis.words import WordSpace
from polyseme.encoders.base import Encoder
from polyseme.formats.load import as_encoder
from polyseme.text.files.sources import Source
from polyseme.text.labelled.conll import read_conll

Model = str | Path | Encoder
File = str | Path


def tags(
    model: Model = "en",
    *,
    train: File,
    test: File,
    column: int | str | None = None,
    resplit: bool = False,
    plot: File | None = None,
    config: ProbeConfig | None = None,
) -> ProbeResult:
    """Probe tags of words (parts of speech, names): train a linear probe on each layer, and one on a learned mix of them.

    Reads CoNLL columns, BMES and CoNLL-U; `column` is a number from 0 (-1: the last) or, in CoNLL-U, a name. `resplit` lets
    the model split the text itself, for data that is tokenized differently. Tags of spans (B-PER, I-PER) are scored by F1 of
    spans as well. The baseline gives every word its most frequent tag.

    >>> tags("en", train="train.conllu", test="test.conllu", column="upos")   # doctest: +SKIP
    """
    _check(plot)
    data = read_conll(train, column=column), read_conll(test, column=column)
    return _plotted(probe_tags(as_encoder(model), *data, resplit=resplit, config=config), plot)


def senses(model: Model = "en", *, train: File | Sequence[File], test: File, plot: File | None = None) -> ProbeResult:
    """Probe word senses: give each word the nearest sense in the training data, by each layer.

    Reads JSON lines of sentences with WordNet synsets. The baseline is the most frequent sense in training. *Seen* words have
    a lemma that the training data has; among all words, the others count as wrong.

    >>> senses("en", train="semcor*.jsonl.gz", test="senseval2.jsonl.gz")   # doctest: +SKIP
    """
    _check(plot)
    paths = [train] if isinstance(train, str | Path) else train
    learned = [sentence for file in Source([str(path) for path in paths]).files for sentence in read_senses(file.path)]
    return _plotted(probe_senses(as_encoder(model), learned, read_senses(test)), plot)


def wic(
    model: Model = "en",
    *,
    dev: File,
    test: File,
    dev_gold: File | None = None,
    test_gold: File | None = None,
    plot: File | None = None,
) -> ProbeResult:
    """Probe whether a word has the same sense in two sentences, by a threshold on the cosine of each layer.

    Reads the files of WiC: lines of word, part of speech, i-j and two sentences, and T or F in a second file. The threshold of
    each layer is the best one on dev.

    >>> wic("en", dev="dev.data.txt", test="test.data.txt")   # doctest: +SKIP
    """
    _check(plot)
    data = read_wic(dev, dev_gold), read_wic(test, test_gold)
    return _plotted(probe_word_in_context(as_encoder(model), *data), plot)


def similarity(file: File, model: Model = "en", *, plot: File | None = None) -> ProbeResult:
    """Probe the similarity of two words in their sentences: correlate the cosines of each layer with human scores.

    Reads tab-separated columns with the header word1 index1 sentence1 word2 index2 sentence2 score; sentences are split at
    spaces, and an index is the position of the word, from 0.

    >>> similarity("pairs.tsv")   # doctest: +SKIP
    """
    _check(plot)
    data = read_similarities(file)
    return _plotted(probe_similarity(as_encoder(model), data), plot)


def words(file: File, model: Model = "en", *, plot: File | None = None) -> ProbeResult:
    """Probe the similarity of two words without context: correlate cosines with human scores (WordSim-353, SimLex-999).

    Reads lines of two words and a score. Each word is embedded alone; pairs with a word that the model does not know are
    skipped and counted.

    >>> words("wordsim353.tsv", "my-vectors")   # doctest: +SKIP
    """
    _check(plot)
    data = read_scored_pairs(file)
    return _plotted(probe_words(as_encoder(model), data), plot)


def analogies(file: File, model: Model = "en") -> AnalogyScores:
    """Probe analogies (Athens : Greece = Baghdad : ?): count those that the word nearest to B - A + C solves.

    Reads lines of four words, under lines `: section` if there are sections (Google's questions-words.txt). Uses the static
    vectors of the model. Questions with unknown words are skipped and counted.

    >>> analogies("questions-words.txt", "my-vectors")   # doctest: +SKIP
    """
    sections = read_analogies(file)
    return probe_analogies(WordSpace(as_encoder(model)), sections)


def samples(model: Model = "en", *, plot: File | None = None) -> ProbeResult:
    """Probe the senses of the sample sentences of the package, English or Chinese as the model.

    Measures how often the nearest other occurrence of a word has the same sense. The facts have the share of each word by the
    top layer.

    >>> samples("en")   # doctest: +SKIP
    """
    _check(plot)
    encoder = as_encoder(model)
    return _plotted(probe_samples(encoder, sample_sentences.samples(sample_sentences.language_of(encoder))), plot)


def _check(plot: File | None) -> None:
    if plot is not None:
        check_plot(plot)


def _plotted(result: ProbeResult, plot: File | None) -> ProbeResult:
    if plot is not None:
        result.plot(plot)
    return result
