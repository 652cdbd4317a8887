"""A word in a sentence, and the words nearest to it: in context, and by their static vectors.

Table 4 of Peters et al. 2018 on any corpus: the neighbours of a static vector mix the senses of a word, those of a contextual
vector have the same sense. The words around it count, too (`surroundings`). Words that differ only in case are the same word
here.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from polyseme.analysis.concordance import concordance, join_words
from polyseme.analysis.config import NeighboursConfig, SearchedTextConfig
from polyseme.analysis.index import DEFAULT_LAYER, Index, SenseQuestion, check_comparable, layer_slice
from polyseme.analysis.samples import language_of, samples
from polyseme.analysis.substitute_vectors import substitute_vectors
from polyseme.base.display import count as counted
from polyseme.base.display import html_table, padded, short
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder, Sentence
from polyseme.encoders.language_model import find_position
from polyseme.encoders.static_vectors import lacks_row
from polyseme.formats.load import as_encoder
from polyseme.text.config import TextConfig
from polyseme.text.files.sources import Source

_WORD_WIDTH = 16  # terminal columns of a word
Text = str | Path | Sequence[str | Path] | Source | Iterable[Sentence]
"""A path, several paths, a `Source`, a `Corpus`, or lists of words."""


@dataclass(frozen=True)
class Neighbour:
    """A word in a sentence of the index."""

    word: str
    cosine: float
    sentence: list[str]
    position: int

    def to_json(self) -> dict[str, Any]:
        return {"word": self.word, "cosine": self.cosine, "words": self.sentence, "position": self.position}


@dataclass(frozen=True)
class StaticNeighbour:
    """A distinct word of the index."""

    word: str
    cosine: float
    """Of the static vectors (layer 0), which do not depend on the sentence."""
    count: int

    def to_json(self) -> dict[str, Any]:
        return {"word": self.word, "cosine": self.cosine, "count": self.count}


@dataclass(frozen=True)
class Searched:
    """What was searched."""

    words: int
    sentences: int
    layers: list[int]
    layer_name: str
    same_word: bool | None = None
    contextual: bool = True
    """Whether the model has vectors that depend on the sentence."""
    static: bool = True
    """Whether the model has static vectors."""
    window: int = 0
    """Words on each side that were compared, too."""
    substitutes: bool = False
    """Whether occurrences of the same word were also compared by what could stand in their place."""
    folder: Path | None = None
    repeats: bool = False
    """Whether the text has sentences more than once, of which one is searched."""


@dataclass(frozen=True)
class Neighbours:
    """The words nearest to a word, nearest first."""

    words: list[str]
    """The sentence that was asked about."""
    position: int
    in_context: list[Neighbour]
    static: list[StaticNeighbour]
    """Empty if the model has no static vectors or does not know the word."""
    searched: Searched
    known: bool = True
    """Whether the word has a vector; all unknown words of a model share one."""

    def to_json(self) -> dict[str, Any]:
        return {
            "words": self.words,
            "position": self.position,
            "layers": self.searched.layers,
            "in_context": [each.to_json() for each in self.in_context],
            "by_itself": [each.to_json() for each in self.static],
        }

    def __str__(self) -> str:
        width = shutil.get_terminal_size((100, 24)).columns
        sentences = counted(self.searched.sentences, "different sentence" if self.searched.repeats else "sentence")
        size = f"{counted(self.searched.words, 'word')} in {sentences}"
        lines = [short(join_words(self.words, mark=self.position), width), ""]
        if self.searched.contextual:
            around = f", window {self.searched.window}" if self.searched.window else ""
            around += ", substitutes" if self.searched.substitutes else ""
            head = short(f"in context ({self.searched.layer_name}{around}; {size})", width)
            lines += [head, *self._context_lines(width)]
        if self.searched.contextual and self.searched.static:
            lines.append("")
        if self.searched.static:
            lines.append(f"by its static vector ({'layer 0' if self.searched.contextual else size})")
            if not self.known:
                lines.append("  none: the model does not know the word, and has one vector for all unknown words")
            lines += [f"{self._start(each)}  {counted(each.count, 'time')} in the text" for each in self.static]
        if self.searched.folder is not None:
            lines += ["", f"index: {self.searched.folder}"]
        return "\n".join(lines)

    def _context_lines(self, width: int) -> list[str]:
        if not self.in_context:
            what = "other occurrences of this word" if self.searched.same_word else "other words"
            return [f"  none: the text has no {what}"]
        occurrences = [(each.sentence, each.position) for each in self.in_context]
        lines = concordance(occurrences, width - self._column() - 11)
        return [f"{self._start(each)}  {line}" for each, line in zip(self.in_context, lines, strict=True)]

    def _start(self, each: Neighbour | StaticNeighbour) -> str:
        return f" {each.cosine:6.3f}  {padded(short(each.word, _WORD_WIDTH), self._column())}"

    def _column(self) -> int:
        words = [each.word for each in self.in_context] + [each.word for each in self.static]
        return max((cell_len(short(word, _WORD_WIDTH)) for word in words), default=0)

    def _repr_html_(self) -> str:
        rows = [[f"{each.cosine:.3f}", each.word, join_words(each.sentence, each.position)] for each in self.in_context]
        rows += [
            [f"{each.cosine:.3f}", each.word, f"static vector, {counted(each.count, 'time')} in the text"]
            for each in self.static
        ]
        return html_table(["cosine", "word", "where"], rows, caption=join_words(self.words, mark=self.position))


def neighbours(
    model: str | Path | Encoder,
    sentence: Sentence,
    *,
    word: str | None = None,
    position: int | None = None,
    corpus: Text | None = None,
    index: str | Path | Index | None = None,
    vectors: NDArray[np.float32] | None = None,
    config: NeighboursConfig | None = None,
) -> Neighbours:
    """Find the words of a text that are nearest to a word in its sentence, and those nearest to its static vector.

    `word` or `position` chooses the word. `corpus`: the text to search, by default the sample sentences of the package.
    `index`: a folder that stores the vectors of the text for the next call, or an `Index`. `vectors`: those of the sentence,
    (layers, words, dim), if you have them. A model with one layer (word2vec, GloVe) has only static neighbours, a TagLM
    none of these. An n-gram model has neither.

    >>> polyseme.neighbours("en", "We sat on the bank of the river.", word="bank")   # doctest: +SKIP
    """
    encoder, config = as_encoder(model), config or NeighboursConfig()
    check_comparable(encoder)
    contextual = encoder.layers > 1 or not encoder.has_static_vectors
    if not contextual and (config.same_word or config.other_words or config.layer is not None):
        raise UsageError(
            f"{arg('layer')}, {arg('same_word')} and {arg('other_words')} apply to words in context, but a {encoder.kind} has "
            "only static vectors: leave them out"
        )
    layer = DEFAULT_LAYER if config.layer is None else config.layer
    layer_slice(layer, encoder.layers)  # a wrong layer or position is reported before the text is read
    words = encoder.words(sentence)
    chosen = find_position(sentence, words, word, position)
    if not isinstance(index, Index):
        with progress("embedding", unit="sentences") as advance:
            index = Index.build(encoder, searched_sentences(encoder, corpus, config), index, advance, layer=layer)
    same = config.restrict_to_same_word
    window = config.words_around if contextual else 0
    result = nearest_words(encoder, index, words, chosen, config.count, same_word=same, vectors=vectors, window=window)
    if contextual:
        return result
    if not result.known:
        unknown = f"the model does not know the word {words[chosen]!r}"
        raise PolysemeError(f"{unknown}: choose another word, or a model that reads characters")
    return replace(result, in_context=[], searched=replace(result.searched, contextual=False))


def nearest_words(
    encoder: Encoder,
    index: Index,
    sentence: Sentence,
    position: int,
    count: int = 5,
    *,
    same_word: bool | None = None,
    vectors: NDArray[np.float32] | None = None,
    window: int = 0,
) -> Neighbours:
    """Search an index for the `count` nearest words in context and the `count` nearest static vectors.

    `same_word`: True searches other occurrences of the same word, which shows its senses; False searches other words; None
    searches all. If the text has the same sentence, its words are skipped: they would be nearest, and tell nothing. So is the
    word's own static vector. `vectors`: those of the sentence, (layers, words, dim), if they are there. `window`: words on each
    side that count, together, as much as the word itself; between occurrences of the same word, so does what the model would
    put in their place, if it predicts words.
    """
    index.check(encoder)
    words = encoder.words(sentence)
    if not 0 <= position < len(words):
        raise UsageError(f"{arg('position')} is {position}; the sentence has {counted(len(words), 'word')}, counted from 0")
    stack = encoder.embed([words])[0] if vectors is None else vectors  # (layers, words, dim)
    window = window if len(words) > 1 else 0  # nothing stands around a single word
    same = same_words(index.types, words[position])
    among = other_sentences(index, words)
    if same_word is not None:
        among = same[index.words] == same_word if among is None else among & (same[index.words] == same_word)
    top = index.norms is not None and index.layers == layer_slice("top", encoder.layers)
    substitutes = substitute_vectors(encoder) if window and top else None
    senses = None if substitutes is None else SenseQuestion(substitutes, same[index.words])
    own = stack[index.layers].mean(0)
    nearest = index.search_in_context(own, position, count, among, window=window, senses=senses)
    found = [_occurrence(index, row, cosine) for row, cosine in nearest.pairs()]
    layers = list(range(index.layers.start, index.layers.stop))
    static_layer = encoder.has_static_vectors
    searched = Searched(
        len(index),
        index.manifest.sentences,
        layers,
        index.layer,
        same_word,
        static=static_layer,
        window=window,
        substitutes=substitutes is not None,
        folder=index.folder,
        repeats=int(index.counts.sum()) > len(index),
    )
    known = bool(encoder.known([words[position]])[0])
    static: list[StaticNeighbour] = []
    if static_layer and known:
        others = ~same & encoder.known(index.types)
        if lacks_row(encoder, words[position]):
            rows = index.search_spelled(encoder, stack[0, position], count, others)
        else:
            rows = index.search_static(stack[0, position], count, others)
        static = [StaticNeighbour(index.types[row], cosine, int(index.counts[row])) for row, cosine in rows.pairs()]
    return Neighbours(words, position, found, static, searched, known)


def other_sentences(index: Index, words: Sequence[str]) -> NDArray[np.bool_] | None:
    """Whether each occurrence is in another sentence than this one, (occurrences,); None: all are."""
    rows = index.find_sentence(words)
    if not rows:
        return None
    among = np.ones(len(index), dtype=bool)
    among[rows.start : rows.stop] = False
    return among


def same_words(types: list[str], word: str) -> NDArray[np.bool_]:
    """Whether each of some words equals a word, ignoring case, (types,).

    >>> same_words(["The", "bank", "Bank"], "BANK").tolist()
    [False, True, True]
    """
    folded = word.casefold()
    return np.array([each.casefold() == folded for each in types], dtype=bool)


def searched_sentences(encoder: Encoder, corpus: Text | None, config: SearchedTextConfig) -> Iterable[Sentence]:
    """Return the sentences to search: the user's, split as the model splits, or our samples."""
    if corpus is None:
        return [sample.sentence for sample in samples(language_of(encoder))]
    text = searched_text(corpus, config.field)
    return TextConfig(sentences=config.sentences).open(text, encoder.splitter) if isinstance(text, Source) else text


def searched_text(corpus: Text, field: str | None) -> Source | Iterable[Sentence]:
    """Return a text whose files are opened, or its sentences."""
    paths = [corpus] if isinstance(corpus, str | Path) else corpus
    if isinstance(paths, list | tuple) and paths and all(isinstance(each, str | Path) for each in paths):
        source = Source([str(path) for path in paths], field=field)
        source.warn_of_tables()
        return source
    return paths  # type: ignore[return-value]


def _occurrence(index: Index, row: int, cosine: float) -> Neighbour:
    number, position = index.position(row)
    sentence = index.sentence(number)
    return Neighbour(sentence[position], cosine, sentence, position)
