"""Text into sentences of words, and sentences into blocks of numbers: the work of a worker process.

A block holds each of its words once and the rest as numbers. That is small to send between processes, and later steps
(counting, encoding to ids) look only at the distinct words of a block, about one word in five.
"""

from __future__ import annotations

import functools
import itertools
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.text.sentences import SentenceSplitter
from polyseme.text.splitting.characters import split_characters
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
    documents: NDArray[np.int64]
    """Sentences per document, (documents,)."""

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
    character_fraction: float = 0.0
    """Fraction of the sentences that are split into characters instead; which ones follows from their text."""

    def sentences_of(self, text: str) -> list[list[str]]:
        """Return the sentences of paragraphs that are separated by line ends."""
        return list(itertools.chain.from_iterable(self._documents(text)))

    def block_of(self, text: str) -> Block:
        """Return the same sentences as a block."""
        documents = [document for document in self._documents(text) if document]
        return as_block(list(itertools.chain.from_iterable(documents)), [len(document) for document in documents])

    def _documents(self, text: str) -> Iterator[list[list[str]]]:
        """Yield the sentences of each document; of a document without words, none."""
        if self.straight_quotes:  # only the quotes: to translate every letter takes longer than to split words
            text = _CURLY.sub(lambda match: normalise_quotes(match.group()), text)
        split = _fast(self.words)
        if self.character_fraction:
            split = functools.partial(_mixed, split, int(self.character_fraction * (1 << 32)))
        for document in split_documents(text):
            sentences = (sentence for paragraph in document for sentence in self.sentences(paragraph))
            yield [words for sentence in sentences if (words := split(sentence))]  # invisible ones have no words


def _mixed(split: Callable[[str], list[str]], limit: int, sentence: str) -> list[str]:
    """Split a sentence into words, or into characters if its checksum is below a limit."""
    checksum = zlib.crc32(sentence.encode("utf-8", "surrogatepass"))
    return split_characters(sentence) if checksum < limit else split(sentence)


def split_documents(text: str) -> list[list[str]]:
    """Return the documents of a text, each a list of paragraphs. Blank lines separate them; without any, a line is a document.

    Files are read in blocks of a quarter of a megabyte; a document across the edge of two blocks counts as two.

    >>> split_documents("one\\ntwo\\n\\nthree\\n"), split_documents("one\\ntwo\\n")
    ([['one', 'two'], ['three']], [['one'], ['two']])
    """
    paragraphs = text.strip("\n").split("\n")
    has_text = [bool(paragraph.strip()) for paragraph in paragraphs]
    if all(has_text):
        return [[paragraph] for paragraph in paragraphs]
    groups = itertools.groupby(zip(paragraphs, has_text, strict=True), key=lambda each: each[1])
    return [[paragraph for paragraph, _ in group] for is_text, group in groups if is_text]


def as_block(sentences: list[list[str]], documents: list[int] | None = None) -> Block:
    """Return sentences as a block. `documents`: sentences per document; None: one document.

    >>> block = as_block([["a", "rose"], ["a"]])
    >>> block.types, block.ids.tolist(), block.lengths.tolist(), block.documents.tolist()
    (['a', 'rose'], [0, 1, 0], [2, 1], [2])
    """
    types: dict[str, int] = {}
    ids = [types.setdefault(word, len(types)) for sentence in sentences for word in sentence]
    lengths = np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences))
    per_document = np.array([len(sentences)] if documents is None else documents, dtype=np.int64)
    return Block(list(types), np.array(ids, dtype=np.uint32), lengths, per_document)


@functools.cache
def _fast(splitter: Splitter) -> Callable[[str], list[str]]:
    """Return the splitter, or a faster one that gives the same words; one per process, because it has a cache."""
    return FastEnglish() if splitter.name == "english" else splitter
