"""Words as rows of character ids: the two schemes of published ELMo models.

`Utf8Characters` encodes a word as UTF-8 bytes (bilm-tf, AllenNLP and followers); `CodePointCharacters` as code points of
a list (ELMoForManyLangs). In both, a row is a begin-of-word id, the spelling, an end-of-word id and padding up to `max_length`;
longer spellings are cropped.

No Python code runs per letter, because a corpus has several letters per word: the spellings of all words are joined into one
buffer, the ids are looked up in one step, and one mask says where in the rows they go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError

Ids = NDArray[np.int64]


class Characters(Protocol):
    """A scheme of character ids."""

    begin: str
    """The begin-of-sentence word."""
    end: str
    """The end-of-sentence word."""
    symbols: int
    """Number of ids: rows of the character embedding."""
    padding: int
    """The padding id."""
    max_length: int
    """Ids per row, begin and end of word included."""

    @property
    def name(self) -> str:
        """A name for exactly this scheme, usable in a file name."""

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """Return the rows, (n, max_length), and their used lengths, begin and end of word included, (n,)."""
        ...


class _Scheme:
    """What both schemes share: special ids around the spelling of each word."""

    max_length: int
    _special: tuple[int, int, int]
    """The ids of begin of word, end of word and padding."""
    _sentence_ids: dict[str, int]
    """The words that are one symbol: begin and end of sentence."""

    def __init__(self, max_length: int) -> None:
        if max_length < 3:
            raise PolysemeError(f"max_length is {max_length}; allowed: 3 or more (begin of word, a character, end of word)")
        self.max_length = max_length

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """Return the rows, (n, max_length), and their used lengths, begin and end of word included, (n,)."""
        lengths, body = self._spell(["\0" if word in self._sentence_ids else word for word in words], self.max_length - 2)
        begin, end, padding = self._special
        ids = np.full((len(words), self.max_length), padding, dtype=np.int64)
        ids[:, 0] = begin
        # A mask is read row by row, which is the order of the buffer.
        ids[:, 1:-1][np.arange(self.max_length - 2) < lengths[:, None]] = body
        ids[np.arange(len(words)), lengths + 1] = end
        for row, word in enumerate(words):
            if word in self._sentence_ids:
                ids[row, 1] = self._sentence_ids[word]
        return ids, lengths + 2

    def _spell(self, words: Sequence[str], room: int) -> tuple[Ids, Ids]:
        """Return the lengths of the spellings, (n,), and their ids one after another, (sum of lengths,)."""
        raise NotImplementedError


class Utf8Characters(_Scheme):
    """A word as its UTF-8 bytes, with the ids of inference: byte + 1, then five special ids; 0 is for absent words.

    Cropping may split a multi-byte character, code points that UTF-8 cannot hold (lone surrogates) are dropped, and the words
    `<S>` and `</S>` always mean begin and end of sentence: this is how the published models saw words.

    >>> ids, lengths = Utf8Characters(max_length=6).encode(["at", "<S>"])
    >>> ids.tolist(), lengths.tolist()
    ([[259, 98, 117, 260, 261, 261], [259, 257, 260, 261, 261, 261]], [4, 3])
    """

    begin = "<S>"
    end = "</S>"
    symbols = 262
    padding = 261
    _special = (259, 260, padding)
    _sentence_ids: ClassVar[dict[str, int]] = {begin: 257, end: 258}  # type: ignore[misc]

    def __init__(self, max_length: int = 50) -> None:
        super().__init__(max_length)

    @property
    def name(self) -> str:
        """A name for exactly this scheme."""
        return f"utf8-{self.max_length}"

    def _spell(self, words: Sequence[str], room: int) -> tuple[Ids, Ids]:
        spellings = [_utf8(word, room) for word in words]
        body = np.frombuffer(b"".join(spellings), dtype=np.uint8).astype(np.int64) + 1
        return np.fromiter(map(len, spellings), dtype=np.int64, count=len(words)), body


class CodePointCharacters(_Scheme):
    """A word as code points of a list, as in ELMoForManyLangs; the id of a symbol is its position in the list.

    That code used the id of `<eow>` for the begin of a word and that of `<bow>` for its end. Its models are trained that way,
    so the swap is kept. The words `<bos>` and `<eos>` are one symbol each.

    >>> scheme = CodePointCharacters(["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>", "a"], max_length=5)
    >>> scheme.encode(["ab", "<bos>"])[0].tolist()
    [[1, 6, 2, 0, 3], [1, 4, 0, 3, 3]]
    """

    begin = "<bos>"
    end = "<eos>"

    def __init__(self, symbols: Sequence[str], max_length: int = 50) -> None:
        super().__init__(max_length)
        self.symbols = len(symbols)
        ids = {symbol: i for i, symbol in enumerate(symbols)}  # the last of duplicates counts
        missing = [name for name in ("<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>") if name not in ids]
        if missing:
            raise PolysemeError(f"the character list lacks {', '.join(missing)}; this scheme needs all six special symbols")
        self.padding = ids["<pad>"]
        self._special = (ids["<eow>"], ids["<bow>"], self.padding)
        self._sentence_ids = {word: ids[word] for word in (self.begin, self.end)}
        self._ids = _code_point_table(ids, unknown=ids["<oov>"])

    @property
    def name(self) -> str:
        """A name for exactly this scheme: it depends on all that decides the ids."""
        special = [*self._special, *self._sentence_ids.values()]
        digest = hashlib.sha256(str(special).encode() + self._ids.astype("<i8").tobytes())
        return f"points-{digest.hexdigest()[:16]}-{self.max_length}"

    def _spell(self, words: Sequence[str], room: int) -> tuple[Ids, Ids]:
        spellings = [word[:room] for word in words]
        points = np.frombuffer("".join(spellings).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        lengths = np.fromiter(map(len, spellings), dtype=np.int64, count=len(words))
        return lengths, self._ids[np.minimum(points, len(self._ids) - 1)]


def _utf8(word: str, room: int) -> bytes:
    """Return the first `room` bytes of a word; a word of a million characters costs no more than a short one."""
    spelling = word[:room].encode("utf-8", "ignore")
    if len(spelling) < room < len(word):  # only dropped surrogates make fewer bytes than code points
        spelling = word.encode("utf-8", "ignore")
    return spelling[:room]


def _code_point_table(ids: dict[str, int], unknown: int) -> Ids:
    """Return ids by code point, up to one after the largest known (at most 8.9 MB); that one is unknown."""
    known = {ord(symbol): i for symbol, i in ids.items() if len(symbol) == 1}
    table = np.full(max(known, default=0) + 2, unknown, dtype=np.int64)
    table[np.fromiter(known, dtype=np.int64, count=len(known))] = list(known.values())
    return table
