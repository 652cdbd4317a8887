"""Text into sentences of words, and sentences into blocks of numbers: the work of a worker process.

A block holds each of its words once and the rest as numbers. That is small to send between processes, and later steps
(counting, encoding to ids) look only at the distinct words of a block, about one word in five.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.text.sentences import SentenceSplitter
from polyseme.text.splitting.english_fast import FastEnglish
from polyseme.text.words import Splitter, normalise_quotes

_CURLY = re.compile("[\u2018-\u201f]+")


class Block(NamedTuple):
    """Some sentences of words."""

    types: list[str]
    """The distinct words, in the order of their first occurrence."""
    ids: NDArray[np.uint32]
    """Every word as a position in `types`, sentence after sentence, (words,)."""
    lengths: NDArray[np.int64]
    """Words per sentence, (sentences,)."""

    def sentences(self) -> Iterator[list[str]]:
        """Yield the sentences."""
        words = [self.types[i] for i in self.ids.tolist()]
        start = 0
        for length in self.lengths.tolist():
            yield words[start : start + length]
            start += length

    def counts(self) -> NDArray[np.int64]:
        """Return how often each of `types` occurs, (types,)."""
        return np.bincount(self.ids, minlength=len(self.types))


@dataclass(frozen=True, slots=True)
class TextSplitter:
    """Splits paragraphs into sentences of words; cheap to send to another process."""

    words: Splitter
    sentences: SentenceSplitter
    straight_quotes: bool

    def sentences_of(self, text: str) -> list[list[str]]:
        """Return the sentences of paragraphs that are separated by line ends."""
        if self.straight_quotes:  # only the quotes: to translate every letter takes longer than to split words
            text = _CURLY.sub(lambda match: normalise_quotes(match.group()), text)
        split = _fast(self.words)
        sentences = (sentence for paragraph in text.split("\n") for sentence in self.sentences(paragraph))
        return [words for sentence in sentences if (words := split(sentence))]  # invisible ones have no words

    def block_of(self, text: str) -> Block:
        """Return the same sentences as a block."""
        return as_block(self.sentences_of(text))


def as_block(sentences: list[list[str]]) -> Block:
    """Return sentences as a block.

    >>> block = as_block([["a", "rose"], ["a"]])
    >>> block.types, block.ids.tolist(), block.lengths.tolist()
    (['a', 'rose'], [0, 1, 0], [2, 1])
    """
    types: dict[str, int] = {}
    ids = [types.setdefault(word, len(types)) for sentence in sentences for word in sentence]
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    return Block(list(types), np.array(ids, dtype=np.uint32), lengths)


@functools.cache
def _fast(splitter: Splitter) -> Callable[[str], list[str]]:
    """Return the splitter, or a faster one that gives the same words; one per process, because it has a cache."""
    return FastEnglish() if splitter.name == "english" else splitter
