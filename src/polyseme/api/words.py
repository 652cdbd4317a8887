"""Nearest words, by a word's vector alone or by its vector in a sentence, and the senses of words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from polyseme.api.arguments import AnyCorpus, Count, FilePath, ModelForText, Position, SentenceArgument, Word
from polyseme.api.settings import with_settings
from polyseme.api.texts import model_for, model_for_text
from polyseme.base.config import Setting
from polyseme.base.errors import UsageError, arg
from polyseme.base.out_paths import check_out_file

if TYPE_CHECKING:
    from polyseme.analysis.config import NeighboursConfig, SensesConfig
    from polyseme.analysis.neighbours import Neighbours
    from polyseme.analysis.sense_vectors import SenseVectors
    from polyseme.analysis.words import SimilarWords, WordSpace

_log = logging.getLogger(__name__)
WordArgument = Annotated[str, Setting(help="The word to look at.", metavar="WORD")]


def similar(word: WordArgument, *, count: Count = 10, model: ModelForText = None) -> SimilarWords:
    """Find the words nearest to a word out of context, by cosine similarity.

    Word vectors (word2vec, GloVe, fastText) are compared with all words; a model that reads sentences, with the words of its
    vocabulary by layer 0, which does not depend on the sentence. `neighbours` compares words in context.

    >>> import polyseme                     # doctest: +SKIP
    >>> polyseme.similar("river", count=3)  # doctest: +SKIP
    """
    from polyseme.analysis.words import WordSpace

    space = WordSpace(model_for([word], model, looked_up=True)[0])
    found = space.similar(word, count)
    _warn_of_spelled(space, [word])
    return found


def analogy(
    first: Annotated[str, Setting(help="A is to B ...", metavar="A")],
    second: Annotated[str, Setting(help="... as", metavar="B")],
    third: Annotated[str, Setting(help="C is to the answer.", metavar="C")],
    *,
    count: Count = 5,
    model: ModelForText = None,
) -> SimilarWords:
    """Find the word that is to C as B is to A: the nearest to B - A + C, other than those three.

    >>> import polyseme                                               # doctest: +SKIP
    >>> polyseme.analogy("man", "king", "woman", model="my-vectors")  # doctest: +SKIP
    """
    from polyseme.analysis.words import WordSpace

    space = WordSpace(model_for([first, second, third], model, looked_up=True)[0])
    found = space.analogy(first, second, third, count)
    _warn_of_spelled(space, [first, second, third])
    return found


def _warn_of_spelled(space: WordSpace, words: Sequence[str]) -> None:
    """Warn of words that are not in the vocabulary: a typing error has neighbours, too."""
    for word in dict.fromkeys(words):
        if warning := space.warning(word):
            _log.warning("%s", warning)


SearchedText = Annotated[
    AnyCorpus | None,
    Setting(
        help="Text to search: a file, folder or glob (may be repeated), or - for standard input.",
        default_text="the sample sentences of the package",
        metavar="SOURCE",
        group="Text",
        flags=("-c",),
    ),
]
IndexFolder = Annotated[
    FilePath | None,
    Setting(
        help="Folder that caches the vectors of the text for later searches; or a dataset of `embed`, for approximate search "
        "(extra faiss).",
        metavar="FOLDER",
        group="Text",
    ),
]


@with_settings(config="polyseme.analysis.config:NeighboursConfig")
def neighbours(
    sentence: SentenceArgument,
    *,
    word: Word = None,
    position: Position = None,
    model: ModelForText = None,
    corpus: SearchedText = None,
    index: IndexFolder = None,
    config: NeighboursConfig,
) -> Neighbours:
    """Find the words of a text that are nearest to a word in its sentence.

    Beside them stand the words nearest to its static vector (layer 0), which does not depend on the sentence and mixes all
    senses. A model with one layer (word2vec, GloVe) has only these; a TagLM or n-gram model has none.

    >>> import polyseme                                                       # doctest: +SKIP
    >>> polyseme.neighbours("We sat on the bank of the river.", word="bank")  # doctest: +SKIP
    """
    from polyseme.analysis.neighbours import neighbours as search
    from polyseme.scale.folder import MANIFEST

    if index is not None and isinstance(index, str | Path) and (Path(index) / MANIFEST).is_file():
        if corpus is not None:
            raise UsageError(f"{arg('index')} is a dataset, which has its own text: leave {arg('corpus')} out")
        return _in_dataset(sentence, word, position, model, Path(index), config)
    return search(
        model_for([sentence], model)[0], sentence, word=word, position=position, corpus=corpus, index=index, config=config
    )


SenseWords = Annotated[
    Sequence[str] | None,
    Setting(help="Words to look at.", metavar="[WORD]", default_text="all with at least --min-uses uses"),
]
SenseFile = Annotated[
    FilePath | None,
    Setting(
        help="File for the vectors: .txt or .vec (word2vec text), .bin (word2vec binary) or .glove (GloVe text).",
        metavar="FILE",
        flags=("-o",),
    ),
]


@with_settings(config="polyseme.analysis.config:SensesConfig")
def senses(
    words: SenseWords = None,
    *,
    model: ModelForText = None,
    corpus: SearchedText = None,
    out: SenseFile = None,
    config: SensesConfig,
) -> SenseVectors:
    """Find the senses of words in a text, and write a vector for each: bank#1, bank#2.

    The uses of a word are grouped by their vectors in context; a sense is the mean of a group. The largest group is #1.
    Programs for word2vec and GloVe read the file.

    >>> import polyseme                                                       # doctest: +SKIP
    >>> polyseme.senses(["bank"], corpus="news.txt", out="senses.vec")        # doctest: +SKIP
    """
    from polyseme.analysis.neighbours import searched_text
    from polyseme.analysis.sense_vectors import sense_vectors

    if out is not None:
        check_out_file(out)
    wanted = [words] if isinstance(words, str) else words
    if corpus is None:
        encoder, _ = model_for(wanted or [], model)
        return sense_vectors(encoder, wanted, out=out, config=config)
    encoder, text = model_for_text(searched_text(corpus, config.field), model)
    return sense_vectors(encoder, wanted, corpus=text, out=out, config=config)


def _in_dataset(
    sentence: SentenceArgument, word: Word, position: Position, model: ModelForText, folder: Path, config: NeighboursConfig
) -> Neighbours:
    from polyseme.encoders.language_model import find_position
    from polyseme.scale.vector_index import DatasetIndex, Source, dataset_neighbours

    if config.window:
        raise UsageError(f"{arg('window')} is {config.window}; allowed for a dataset: 0, because it is searched by words alone")
    encoder, _ = model_for([sentence], model)
    words = encoder.words(sentence)
    chosen = find_position(sentence, words, word, position)
    index = DatasetIndex.build(Source.of(folder, config.layer))
    return dataset_neighbours(encoder, index, words, chosen, config.count, same_word=config.restrict_to_same_word)
