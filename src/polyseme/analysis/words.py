"""Words without context: nearest words and analogies by static vectors.

All comparisons are by cosine. An analogy is solved by 3CosAdd (Mikolov, Yih and Zweig 2013): for a : b as c : ?, the word
nearest to b - a + c, of vectors of length 1, other than those three.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.search import normalised
from polyseme.base.errors import PolysemeError, UsageError, arg, nearest
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.results import Similar, SimilarWords
from polyseme.encoders.static_vectors import row_parts, static_vectors, vocabulary_words
from polyseme.nn.matmul import array_matmul
from polyseme.text.word_vectors import WordVectors

_QUESTIONS_PER_BATCH = 256


@dataclass(frozen=True)
class WordVector:
    """The vector of a word."""

    word: str
    """As the model knows it: perhaps in another case."""
    vector: NDArray[np.float32]
    """(dim,), of length 1."""


class WordList:
    """Words by decreasing frequency; a word that is missing is looked up in any case.

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
        """Return the row of a word, or of the most frequent one that differs only in case."""
        row = self._rows.get(word)
        return self._folded.get(word.casefold()) if row is None else row


class WordSpace:
    """The words that a model knows, as static vectors of length 1.

    >>> from polyseme.encoders.word2vec import WordVectorTable
    >>> from polyseme.text.word_vectors import WordVectors
    >>> vectors = WordVectors(["a", "b", "c"], np.array([[1, 0], [1, 0.1], [0, 1]], dtype=np.float32), total=3)
    >>> WordSpace(WordVectorTable.from_vectors(vectors)).similar("a", 1)[0].word
    'b'
    """

    def __init__(self, encoder: Encoder, static: WordVectors | None = None) -> None:
        """Take the static vectors of a model, or those that were computed before."""
        self.encoder = encoder
        static = static_vectors(encoder) if static is None else static
        self.words, self.vectors = static.words, normalised(static.vectors)
        """The words, and their vectors (words, dim)."""
        self._lengths = np.linalg.norm(static.vectors, axis=1, keepdims=True)
        self._list = WordList(self.words)

    def row(self, word: str) -> int | None:
        """Return the row of a word, or of the most frequent one that differs only in case."""
        return self._list.row(word)

    def find(self, word: str) -> WordVector | None:
        """Return the vector of a word of the space, or of one that the model can spell; None if it has none."""
        row = self.row(word)
        if row is not None:
            return WordVector(self.words[row], self.vectors[row])
        if not self.encoder.known([word])[0]:
            return None
        return WordVector(word, normalised(self.encoder.embed([[word]], layers=0)[0].reshape(-1)))

    def get(self, word: str) -> WordVector:
        """Return the vector of a word; raise if it has none."""
        word = word.strip()
        if not word:
            raise UsageError("the word is empty: give one")
        if len(word.split()) > 1 and self.row(word) is None:
            raise UsageError(self._not_a_word(word))
        vector = self.find(word)
        if vector is None:
            hint = nearest(word, self.words) if len(self.words) < 1_000_000 else ""
            hint = hint if hint.startswith(" (did") else ""
            raise PolysemeError(
                f"the model does not know the word {word!r}{hint}; it knows {len(self.words):,} words: choose another"
            )
        return vector

    def warning(self, word: str) -> str | None:
        """Return what the user should know about a word that has a vector; None: it is in the vocabulary."""
        word = word.strip()
        if self.row(word) is not None:
            return None
        of = "that the model was trained to predict" if self.encoder.predicts_words else "of the model's vocabulary"
        return f"{word!r} is not among the {len(self.words):,} words {of}; its vector comes from its characters only"

    def _not_a_word(self, phrase: str) -> str:
        """Why a phrase has no vector here, and what to do; some tables of word vectors have phrases as one word, new_york."""
        words = phrase.split()
        rows = [row for sign in "_-" if (row := self.row(sign.join(words))) is not None]
        hint = " or ".join(["give one of them", *(repr(self.words[row]) for row in rows)])
        return f"{phrase!r} is {len(words)} words: {hint}; for phrases, compare vectors of texts (`encode`)"

    def similar(self, word: str, count: int = 10) -> SimilarWords:
        """Find the words nearest to a word, without itself."""
        vector = self.get(word)
        vectors = self.vectors if self.row(word.strip()) is not None else self._spelled
        return SimilarWords(self._nearest(vector.vector, count, [vector.word], vectors), word)

    def analogy(self, first: str, second: str, third: str, count: int = 10) -> SimilarWords:
        """Find the words that are to `third` as `second` is to `first`, best first."""
        for name, word in zip("ABC", (first, second, third), strict=True):
            if not word.strip():
                raise UsageError(f"{name} is empty: give three words, A is to B as C is to the answer")
        a, b, c = (self.get(word) for word in (first, second, third))
        words = self._nearest(b.vector - a.vector + c.vector, count, [a.word, b.word, c.word], self.vectors)
        return SimilarWords(words, [first, second, third])

    def answers(self, questions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Solve analogies: rows (questions, 3) -> rows (questions,)."""
        best = np.empty(len(questions), dtype=np.int64)
        with progress("answering", len(questions), "questions") as advance:
            for begin in range(0, len(questions), _QUESTIONS_PER_BATCH):
                batch = questions[begin : begin + _QUESTIONS_PER_BATCH]
                a, b, c = (self.vectors[column] for column in batch.T)
                cosines = normalised(b - a + c) @ self.vectors.T  # (questions, words)
                np.put_along_axis(cosines, batch, -np.inf, axis=1)
                best[begin : begin + len(batch)] = cosines.argmax(1)
                advance(len(batch))
        return best

    @functools.cached_property
    def _spelled(self) -> NDArray[np.float32]:
        """The vectors that a word outside the vocabulary is compared with: without what only the others can have."""
        parts = row_parts(self.encoder, self.words)
        return self.vectors if parts is None else normalised(self._lengths * self.vectors - parts)

    def _nearest(
        self, vector: NDArray[np.float32], count: int, without: Sequence[str], vectors: NDArray[np.float32]
    ) -> tuple[Similar, ...]:
        if count < 1:
            raise UsageError(f"{arg('count')} is {count}; allowed: 1 or more")
        cosines = array_matmul(vectors, normalised(vector))
        cosines[[row for word in without if (row := self.row(word)) is not None]] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:count].tolist()
        return tuple(Similar(self.words[i], float(np.clip(cosines[i], -1, 1))) for i in best if np.isfinite(cosines[i]))


def isolated_word_vectors(encoder: Encoder, words: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Embed each word alone, (layers, dim); words that the model lacks in any case are left out."""
    if encoder.static:
        space = WordSpace(encoder)
        return {word: known.vector[None] for word in words if (known := space.find(word)) is not None}
    spelling = _known_spelling(encoder, words)
    with progress("embedding", len(spelling), "words") as advance:
        arrays = encoder.embed([[word] for word in spelling.values()], progress=advance)
    return {word: array[:, 0] for word, array in zip(spelling, arrays, strict=True)}


def _known_spelling(encoder: Encoder, words: Sequence[str]) -> dict[str, str]:
    """Return the words that a model knows, in the case in which a closed vocabulary has them."""
    if not encoder.closed_vocabulary:
        return {word: word for word in words}
    vocabulary = vocabulary_words(encoder)
    rows = WordList(vocabulary)
    return {word: vocabulary[row] for word in words if (row := rows.row(word)) is not None}
