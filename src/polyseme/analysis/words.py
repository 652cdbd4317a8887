"""Words by themselves: the nearest ones, analogies, and how well both agree with people.

A table of vectors (word2vec, GloVe, fastText) is looked at as it is; of a model that reads sentences, layer 0 of the words of
its vocabulary, which knows no sentence. All is by the cosine; an analogy by 3CosAdd (Mikolov, Yih and Zweig 2013): to
a : b as c : ?, the word nearest to b - a + c, of vectors of length 1, other than those three.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.span_vectors import normalised
from polyseme.base.errors import PolysemeError, UsageError, nearest
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.static_vectors import has_closed_vocabulary, has_vector, static_vectors, vocabulary_words
from polyseme.encoders.word2vec import Similar, WordVectorTable

_TOGETHER = 64  # words that make a sentence, where layer 0 is computed; the sentence does not matter
_ASKED = 256  # analogies that are answered together


@dataclass(frozen=True)
class WordVector:
    """The vector of a word."""

    word: str
    """As the model knows it: perhaps with other capitals."""
    vector: NDArray[np.float32]
    """(dim,), of length 1."""


class WordList:
    """Words by falling frequency, each found as it is or, where there is none, as one that differs in capitals alone.

    >>> words = WordList(["virus", "Paris", "PARIS"])
    >>> words.row("Virus"), words.row("PARIS"), words.row("paris"), words.row("zebra")
    (0, 2, 1, None)
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._rows = {word: row for row, word in enumerate(words)}
        self._folded: dict[str, int] = {}
        for row, word in enumerate(words):  # the most frequent first
            self._folded.setdefault(word.casefold(), row)

    def row(self, word: str) -> int | None:
        """The position of a word in the list."""
        found = self._rows.get(word)
        return self._folded.get(word.casefold()) if found is None else found


class WordSpace:
    """The words that a model knows, as vectors of length 1.

    >>> vectors = WordVectors(["a", "b", "c"], np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32), total=3)
    >>> WordSpace(WordVectorTable.from_vectors(vectors)).similar("a", 1)[0].word
    'b'
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        found = static_vectors(encoder)
        self.words, self.vectors = found.words, normalised(found.vectors)
        """The words, and their vectors (words, dim)."""
        self._list = WordList(self.words)

    def row(self, word: str) -> int | None:
        """The position of a word as it is or, where there is none, of the most frequent one that differs in capitals alone."""
        return self._list.row(word)

    def find(self, word: str) -> WordVector | None:
        """A word of the space, or one that the model can spell; None: it has no vector."""
        row = self.row(word)
        if row is not None:
            return WordVector(self.words[row], self.vectors[row])
        if not has_vector(self.encoder, [word])[0]:
            return None
        return WordVector(word, normalised(self.encoder.embed([[word]], layers=0)[0][0])[0])

    def need(self, word: str) -> WordVector:
        """The same, where to have none is an error."""
        found = self.find(word)
        if found is None:
            hint = nearest(word, self.words) if len(self.words) < 1_000_000 else ""
            hint = hint if hint.startswith(" (did") else ""
            raise PolysemeError(f"the model does not know the word {word!r}{hint}; it knows {len(self.words):,} words")
        return found

    def similar(self, word: str, count: int = 10) -> list[Similar]:
        """The words nearest to a word, nearest first, without itself."""
        found = self.need(word)
        return self._nearest(found.vector, count, [found.word])

    def analogy(self, first: str, second: str, third: str, count: int = 10) -> list[Similar]:
        """The words that are to `third` as `second` is to `first`, best first."""
        one, two, three = (self.need(word) for word in (first, second, third))
        return self._nearest(two.vector - one.vector + three.vector, count, [one.word, two.word, three.word])

    def answers(self, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The best word for each analogy: rows (questions, 3) -> rows (questions,)."""
        found = np.empty(len(questions), dtype=np.int64)
        with progress("answering", len(questions), "questions") as advance:
            for begin in range(0, len(questions), _ASKED):
                some = questions[begin : begin + _ASKED]
                one, two, three = (self.vectors[column] for column in some.T)
                cosines = normalised(two - one + three) @ self.vectors.T  # (questions, words)
                np.put_along_axis(cosines, some, -np.inf, axis=1)
                found[begin : begin + len(some)] = cosines.argmax(1)
                advance(len(some))
        return found

    def _nearest(self, vector: NDArray[np.float32], count: int, without: Sequence[str]) -> list[Similar]:
        if count < 1:
            raise UsageError(f"count is {count}; it must be at least 1")
        cosines = self.vectors @ normalised(vector)
        rows = [row for word in without if (row := self.row(word)) is not None]
        cosines[rows] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count].tolist()
        return [Similar(self.words[row], float(np.clip(cosines[row], -1, 1))) for row in best if np.isfinite(cosines[row])]


def isolated_word_vectors(encoder: Encoder, words: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Each word read by itself, (layers, dim); those that the model lacks, with other capitals too, are left out."""
    if isinstance(encoder, WordVectorTable):
        space = WordSpace(encoder)
        return {word: found.vector[None] for word in words if (found := space.find(word)) is not None}
    known = _as_known(encoder, words)
    with progress("embedding", len(known), "words") as advance:
        arrays = encoder.embed([[word] for word in known.values()], progress=advance)
    return {word: array[:, 0] for word, array in zip(known, arrays, strict=True)}


def _as_known(encoder: Encoder, words: Sequence[str]) -> dict[str, str]:
    """The words that a model knows, each as it knows it: with other capitals where it has no other way to read it."""
    if not has_closed_vocabulary(encoder):
        return {word: word for word in words}
    own = vocabulary_words(encoder)
    listed = WordList(own)
    return {word: own[row] for word in words if (row := listed.row(word)) is not None}
