"""Text into sentences of words, and sentences into blocks of numbers: what a worker process does.

A block holds each of its words once and the rest as numbers. That is small to send between processes, and what comes
after (counting, encoding to ids) looks at a block's distinct words only, about one word in five.
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
    """The distinct words, in the order in which they first come."""
    ids: NDArray[np.uint32]
    """The places of all words in `types`, sentence after sentence, (words,)."""
    lengths: NDArray[np.int64]
    """Words in each sentence, (sentences,)."""

    def sentences(self) -> Iterator[list[str]]:
        """The sentences again."""
        words = [self.types[place] for place in self.ids.tolist()]
        start = 0
        for length in self.lengths.tolist():
            yield words[start : start + length]
            start += length

    def counts(self) -> NDArray[np.int64]:
        """How often each of `types` comes, (types,)."""
        return np.bincount(self.ids, minlength=len(self.types))


@dataclass(frozen=True, slots=True)
class TextSplitter:
    """How paragraphs become sentences of words; cheap to send to another process."""

    words: Splitter
    sentences: SentenceSplitter
    straight_quotes: bool

    def sentences_of(self, text: str) -> list[list[str]]:
        """The sentences of some paragraphs that line ends divide."""
        if self.straight_quotes:  # only where there are any: to translate every letter takes longer than to split words
            text = _CURLY.sub(lambda found: normalise_quotes(found.group()), text)
        split = _fast(self.words)
        sentences = (sentence for paragraph in text.split("\n") for sentence in self.sentences(paragraph))
        return [words for sentence in sentences if (words := split(sentence))]  # none of invisible marks alone

    def block_of(self, text: str) -> Block:
        """The same sentences as a block."""
        return as_block(self.sentences_of(text))


def as_block(sentences: list[list[str]]) -> Block:
    """Sentences as a block.

    >>> block = as_block([["a", "rose"], ["a"]])
    >>> block.types, block.ids.tolist(), block.lengths.tolist()
    (['a', 'rose'], [0, 1, 0], [2, 1])
    """
    places: dict[str, int] = {}
    ids = [places.setdefault(word, len(places)) for sentence in sentences for word in sentence]
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    return Block(list(places), np.array(ids, dtype=np.uint32), lengths)


@functools.cache
def _fast(words: Splitter) -> Callable[[str], list[str]]:
    """The splitter, or what gives the same words sooner; one for each process, because it remembers."""
    return FastEnglish() if words.name == "english" else words
