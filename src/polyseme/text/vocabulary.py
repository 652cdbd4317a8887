"""Words and their ids: the list that a language model predicts over, one word per line in its file.

The file is bilm-tf's: `<S>`, `</S>`, `<UNK>`, then words by falling frequency (the sampled softmax relies on that order; this
class looks the three up by name). An id is a line number, so a blank line counts; if a word is on two lines, the last id wins.
Lines end only at "\\n": the other line ends of Unicode are words in some corpora.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_bytes

SPECIAL_TOKENS = ("<S>", "</S>", "<UNK>")
"""Begin and end of a sentence, and the unknown word: the first three words of every vocabulary that is built here."""
MAX_WORD_LENGTH = 1000
"""Longer words are cropped: they are noise, and a file without spaces could be one word."""
_SKIPPED = "!!!MAXTERMID"  # a line that older tools left in these files; not a word
_BYTE_ORDER_MARK = "\ufeff"
_LOST = re.compile(rf"\n|\r\Z|[\ud800-\udfff]|\A{_SKIPPED}\Z")  # what a line of a file cannot hold


class Vocabulary:
    """Words and their ids; an id is a position in `words`.

    >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
    >>> vocabulary.ids(["the", "dog"]).tolist(), vocabulary[4], len(vocabulary)
    ([3, 2], 'cat', 5)
    """

    def __init__(self, words: Sequence[str], *, unknown: str | None = "<UNK>", begin: str = "<S>", end: str = "</S>") -> None:
        self.words = list(words)
        self.unknown = unknown
        self.begin = begin
        self.end = end
        self._ids = {word: i for i, word in enumerate(self.words)}

    @classmethod
    def read(cls, path: str | Path, *, unknown: str | None = "<UNK>", begin: str = "<S>", end: str = "</S>") -> Vocabulary:
        """Read a file of one word per line, UTF-8, plain or gzip."""
        words = [line for line in _lines(path) if line != _SKIPPED]
        if not any(words):
            raise FormatError(path, "has no words; expected one word per line")
        return cls(words, unknown=unknown, begin=begin, end=end)

    def to_text(self) -> str:
        """Return the content of a file that `read` turns into the same words."""
        for i, word in enumerate(self.words):
            if _LOST.search(word) or (i == 0 and word.startswith(_BYTE_ORDER_MARK)):
                raise PolysemeError(f"word {i} of the vocabulary, {word!r}, cannot be written as a line of a text file")
        return "".join(f"{word}\n" for word in self.words)

    @property
    def has_unknown(self) -> bool:
        """Whether words outside the vocabulary have an id."""
        return self.unknown is not None and self.unknown in self._ids

    def ids(self, words: Sequence[str]) -> NDArray[np.int64]:
        """Return the id of every word, (n,); words outside the vocabulary get that of the unknown word."""
        other = -1 if self.unknown is None else self._ids.get(self.unknown, -1)
        lookup = self._ids.get
        ids = np.fromiter((lookup(word, other) for word in words), dtype=np.int64, count=len(words))
        if other < 0 and len(ids) and ids.min() < 0:
            word = words[int(ids.argmin())]
            lack = "has no unknown word" if self.unknown is None else f"lacks the unknown word {self.unknown!r}"
            raise PolysemeError(f"{word!r} is not in the vocabulary, which {lack}")
        return ids

    @functools.cached_property
    def characters(self) -> frozenset[str]:
        """The characters of all words; of 50,000 words they are found in 35 ms, once."""
        return frozenset("".join(self.words))

    def find(self, word: str) -> int | None:
        """Return the id of a word; None if the vocabulary lacks it."""
        return self._ids.get(word)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def __getitem__(self, number: int) -> str:
        if number < 0:  # -1 means "no word" in many arrays of ids; the last word would be a silent error
            raise IndexError(f"id {number} is negative; ids run from 0 to {len(self) - 1}")
        return self.words[number]

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)


def _lines(path: str | Path) -> list[str]:
    data = read_bytes(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path}:{line}", f"is not UTF-8 (byte 0x{data[error.start]:02x}); convert the file") from error
    lines = text.removeprefix(_BYTE_ORDER_MARK).split("\n")
    if not lines[-1]:  # after the last line end
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
