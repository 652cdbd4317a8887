"""Words as rows of character ids: the two schemes that published ELMo models were trained with.

`Utf8Characters` spells a word in UTF-8 bytes (bilm-tf, AllenNLP and all that followed them); `CodePointCharacters`
spells it in the code points of a list (ELMoForManyLangs). In both, a row is a begin mark, the spelling, an end mark and
padding up to `max_length`, and the spelling is cut where the row is full.

A corpus has a few letters to every word, so no Python code runs per letter here: the spellings of all words are joined
into one buffer, the ids are looked up in one step, and one mask says where in the rows they go.
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
    """What an encoder asks of a scheme: both classes of this file have it."""

    begin: str
    """The word that stands before a sentence."""
    end: str
    """The word that stands after a sentence."""
    symbols: int
    """How many ids there are: the rows of the character table."""
    padding: int
    """The id that fills a row behind the end mark."""
    max_length: int
    """Ids in a row, both marks counted."""

    @property
    def name(self) -> str:
        """A name for exactly this way to spell, fit for a file's name."""

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """The rows, (n, max_length), and how much of each is used, marks included, (n,)."""
        ...


class Utf8Characters:
    """A word as its UTF-8 bytes, with the ids of inference: byte + 1, then five marks; 0 is left for absent words.

    The cut may fall inside a character of several bytes, code points that UTF-8 cannot hold (lone surrogates) are left
    out, and the words `<S>` and `</S>` are always the sentence marks: all this is how the published models saw words.

    >>> ids, lengths = Utf8Characters(max_length=6).encode(["at", "<S>"])
    >>> ids.tolist(), lengths.tolist()
    ([[259, 98, 117, 260, 261, 261], [259, 257, 260, 261, 261, 261]], [4, 3])
    """

    begin = "<S>"
    end = "</S>"
    symbols = 262
    padding = 261
    _sentence_marks: ClassVar[dict[str, int]] = {begin: 257, end: 258}

    def __init__(self, max_length: int = 50) -> None:
        self.max_length = _checked(max_length)

    @property
    def name(self) -> str:
        """A name for exactly this way to spell."""
        return f"utf8-{self.max_length}"

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """The rows, (n, max_length), and how much of each is used, marks included, (n,)."""
        room = self.max_length - 2
        special = self._sentence_marks
        spellings = [_utf8(word, room) if word not in special else b"\0" for word in words]
        lengths = np.fromiter(map(len, spellings), dtype=np.int64, count=len(spellings))
        body = np.frombuffer(b"".join(spellings), dtype=np.uint8).astype(np.int64) + 1
        ids = _rows(body, lengths, self.max_length, marks=(259, 260, self.padding))
        _set_sentence_marks(ids, words, special)
        return ids, lengths + 2


class CodePointCharacters:
    """A word as code points of a list, as ELMoForManyLangs did it; the id of a symbol is its place in the list.

    That code took the id of `<eow>` for the begin of a word and that of `<bow>` for its end. Its models are trained so,
    and the swap is kept. The words `<bos>` and `<eos>` are one symbol each, wherever they come from.

    >>> scheme = CodePointCharacters(["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>", "a"], max_length=5)
    >>> scheme.encode(["ab", "<bos>"])[0].tolist()
    [[1, 6, 2, 0, 3], [1, 4, 0, 3, 3]]
    """

    begin = "<bos>"
    end = "<eos>"

    def __init__(self, symbols: Sequence[str], max_length: int = 50) -> None:
        self.max_length = _checked(max_length)
        self.symbols = len(symbols)
        places = {symbol: place for place, symbol in enumerate(symbols)}  # of duplicates the last one counts
        missing = [name for name in ("<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>") if name not in places]
        if missing:
            raise PolysemeError(f"the character list lacks {', '.join(missing)}; a list of this scheme holds all six marks")
        self.padding = places["<pad>"]
        self._marks = (places["<eow>"], places["<bow>"], self.padding)
        self._sentence_marks = {word: places[word] for word in (self.begin, self.end)}
        self._ids = _code_point_table(places, unknown=places["<oov>"])

    @property
    def name(self) -> str:
        """A name for exactly this way to spell: all that decides the ids is in it."""
        marks = [*self._marks, *self._sentence_marks.values()]
        whole = hashlib.sha256(str(marks).encode() + self._ids.astype("<i8").tobytes())
        return f"points-{whole.hexdigest()[:16]}-{self.max_length}"

    def encode(self, words: Sequence[str]) -> tuple[Ids, Ids]:
        """The rows, (n, max_length), and how much of each is used, marks included, (n,)."""
        room = self.max_length - 2
        special = self._sentence_marks
        spellings = [word[:room] if word not in special else "\0" for word in words]
        lengths = np.fromiter(map(len, spellings), dtype=np.int64, count=len(spellings))
        points = np.frombuffer("".join(spellings).encode("utf-32-le", "surrogatepass"), dtype="<u4")
        body = self._ids[np.minimum(points, len(self._ids) - 1)]
        ids = _rows(body, lengths, self.max_length, marks=self._marks)
        _set_sentence_marks(ids, words, special)
        return ids, lengths + 2


def _checked(max_length: int) -> int:
    if max_length < 3:
        raise PolysemeError(f"max_length is {max_length}; a row holds a begin mark, a character and an end mark: 3 or more")
    return max_length


def _utf8(word: str, room: int) -> bytes:
    """The first `room` bytes of a word; a word of a million characters costs no more than a short one."""
    spelling = word[:room].encode("utf-8", "ignore")
    if len(spelling) < room < len(word):  # only dropped surrogates make fewer bytes than code points
        spelling = word.encode("utf-8", "ignore")
    return spelling[:room]


def _code_point_table(places: dict[str, int], unknown: int) -> Ids:
    """Ids by code point, up to one behind the largest that is known (8.9 MB at the very most); that one is unknown."""
    known = {ord(symbol): place for symbol, place in places.items() if len(symbol) == 1}
    table = np.full(max(known, default=0) + 2, unknown, dtype=np.int64)
    table[np.fromiter(known, dtype=np.int64, count=len(known))] = list(known.values())
    return table


def _rows(body: Ids, lengths: Ids, max_length: int, marks: tuple[int, int, int]) -> Ids:
    """Lay the joined spellings out in rows: (n, max_length). `marks` are the ids of begin, end and padding."""
    begin, end, padding = marks
    ids = np.full((len(lengths), max_length), padding, dtype=np.int64)
    ids[:, 0] = begin
    # A mask is read row by row, which is the order of the buffer.
    ids[:, 1:-1][np.arange(max_length - 2) < lengths[:, None]] = body
    ids[np.arange(len(lengths)), lengths + 1] = end
    return ids


def _set_sentence_marks(ids: Ids, words: Sequence[str], special: dict[str, int]) -> None:
    """Put the id of a sentence mark where its word held one place in the rows."""
    for row, word in enumerate(words):
        if word in special:
            ids[row, 1] = special[word]
