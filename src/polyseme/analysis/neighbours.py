"""A word in a sentence, and the words nearest to it: in their context, and by their own vectors alone.

ProbeResult 4 of Peters et al. 2018 on any corpus: the neighbours of a static vector mix the senses of a word, those of a vector
that knows its sentence have the same sense. Words that differ in capitals alone count as the same word here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.index import Index
from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder, Sentence
from polyseme.encoders.static_vectors import has_vector


@dataclass(frozen=True)
class Neighbour:
    """A word in a sentence of the index."""

    word: str
    cosine: float
    sentence: list[str]
    """The words of its sentence."""
    position: int
    """Where it stands in it, from 0."""


@dataclass(frozen=True)
class StaticNeighbour:
    """A distinct word of the index."""

    word: str
    cosine: float
    """Of the words' own vectors (layer 0), which know no sentence."""
    count: int
    """How often the text has it."""


@dataclass(frozen=True)
class Neighbours:
    """The words nearest to a word, nearest first."""

    words: list[str]
    """The sentence that was asked about."""
    position: int
    in_context: list[Neighbour]
    static: list[StaticNeighbour]
    """Empty where the model has no vectors that know no sentence, or does not know the word."""
    known: bool = True
    """Whether the word has a vector of its own; all words that a model does not know have the same."""


def neighbours(
    encoder: Encoder, index: Index, sentence: Sentence, position: int, count: int = 5, *, same_word: bool | None = None
) -> Neighbours:
    """The `count` words in context, and the `count` words by themselves, nearest to the word at a position (from 0).

    The layer is that of the index. `same_word`: True looks among other spans of the same word, which shows its senses;
    False among other words; None among all. The word that was asked about is not its own neighbour: where the text has
    the sentence too, its position there is left out, and so is the word among the words by themselves.
    """
    index.check(encoder)
    words = encoder.words(sentence)
    if not 0 <= position < len(words):
        raise UsageError(f"position is {position}; the sentence has {len(words)} words, counted from 0")
    stack = encoder.embed([words])[0][:, position]  # (layers, dim)
    same = same_words(index.types, words[position])
    among = None if same_word is None else same[index.words] == same_word
    found = index.search(stack[index.layers].mean(0), count + 1, among)  # one more: its own position may be among them
    near = [_in_context(index, row, cosine) for row, cosine in zip(found.rows.tolist(), found.cosines.tolist(), strict=True)]
    others = [each for each in near if (each.sentence, each.position) != (words, position)]
    known = bool(has_vector(encoder, [words[position]])[0])
    if not (encoder.has_own_vectors and known):
        return Neighbours(words, position, others[:count], [], known)
    own = index.search_static(stack[0], count, ~same & has_vector(encoder, index.types))
    static = [
        StaticNeighbour(index.types[row], cosine, int(index.counts[row]))
        for row, cosine in zip(own.rows.tolist(), own.cosines.tolist(), strict=True)
    ]
    return Neighbours(words, position, others[:count], static)


def same_words(types: list[str], word: str) -> NDArray[np.bool_]:
    """Which of some words are the same as one, capitals aside, (types,).

    >>> same_words(["The", "bank", "Bank"], "BANK").tolist()
    [False, True, True]
    """
    folded = word.casefold()
    return np.array([each.casefold() == folded for each in types], dtype=bool)


def _in_context(index: Index, row: int, cosine: float) -> Neighbour:
    number, position = index.position(row)
    sentence = index.sentence(number)
    return Neighbour(sentence[position], cosine, sentence, position)
