"""Published word vectors: word2vec text and binary, GloVe text; plain or compressed with gzip, xz or zstd.

    word2vec text      "3000000 300", then a line per word: the word and its numbers, separated by spaces
    GloVe text         the same without the first line
    word2vec binary    "3000000 300", then for each word: the word, a space, its numbers as little-endian float32, and
                       possibly a line end (word2vec.c writes one, gensim does not)

The format is detected by content. Files have millions of words and a model needs some thousands of them, so a file is read as
a stream and only wanted rows are kept; the others are checked only cheaply (size, count, UTF-8). If all are wanted, they go
into one array that grows in place.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.files import ZIP, atomic, starts_with, wrap_os_errors
from polyseme.text.files.decompression import decompress
from polyseme.text.word_vectors import WordVectors

MAX_LINE = 1 << 22  # bytes of a line or word; a longer one is not in a file of word vectors
_STEP = 1 << 18  # numbers by which the array grows, at least
FASTTEXT = b"\xba\x16\x4f\x2f"  # first bytes of fastText's own binary models
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_HEADER = re.compile(rb"[ \t]*([0-9]{1,15})[ \t]+([0-9]{1,15})[ \t\r]*")
_BLANK = re.compile(r"[ \t\n\r\v\f\ud800-\udfff]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")


def is_vectors(path: str | Path) -> bool:
    """Whether a file has word vectors, by its first line: count and size, or a word and two or more numbers.

    True for a fastText model too: reading it reports what to do.
    """
    path = Path(path)
    if starts_with(path, FASTTEXT):
        return True
    try:
        first = _Stream(path).line(1).removeprefix(_BYTE_ORDER_MARK)
    except FormatError:
        return False
    return _HEADER.fullmatch(first) is not None or (_count_numbers(first) > 1 and not _CONTROL.search(first))


def read_vectors(path: str | Path, wanted: Collection[str] | None = None) -> WordVectors:
    """Read the vectors of the wanted words, in their order, without those that the file lacks. None: all words.

    A wanted word that the file has only in lower case gets that vector. Of a repeated word the first row counts.
    """
    path = Path(path)
    rows = _AllRows(path) if wanted is None else _WantedRows(path, wanted)
    stream = _Stream(path)
    first = stream.line(1).removeprefix(_BYTE_ORDER_MARK)
    header = _HEADER.fullmatch(first)
    if header is None:
        rows.dim = _count_numbers(first)
        _read_text(itertools.chain([first] if first else [], stream.lines(after=1)), rows, line=1)
    else:
        rows.announce(int(header[1]), int(header[2]))
        if _is_binary(stream.peek(MAX_LINE), rows.dim):
            _read_binary(stream, rows, rows.announced or 0)
        else:
            _read_text(stream.lines(after=1), rows, line=2)
    return rows.result()


SUFFIXES: dict[str, dict[str, bool]] = {
    ".txt": {},
    ".vec": {},
    ".bin": {"binary": True},
    ".glove": {"header": False},
}
"""The form of a file to write, by its suffix: word2vec text (twice), word2vec binary, GloVe text."""


def form_of(path: str | Path) -> dict[str, bool]:
    """Return the arguments of `write_vectors` for a file, by its suffix."""
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        forms = ".txt or .vec (word2vec text), .bin (word2vec binary), or .glove (GloVe text)"
        raise UsageError(f"{path}: the suffix selects the form: {forms}")
    return SUFFIXES[suffix]


def write_vectors(vectors: WordVectors, path: str | Path, *, binary: bool = False, header: bool = True) -> Path:
    """Write word2vec's text or binary form, or GloVe's (text without a header), complete or absent.

    Reading it gives the same numbers exactly.
    """
    path = Path(path)
    for word in vectors.words:
        if not word or _BLANK.search(word):
            raise PolysemeError(
                f"the word {word!r} is empty, or has a space or a line end: it cannot be in a file of word vectors"
            )
    with atomic(path) as part, part.open("wb") as file:
        if header:
            file.write(f"{len(vectors.words)} {vectors.dim}\n".encode())
        form = " ".join(["%.9g"] * vectors.dim)  # nine digits are exact for float32
        for word, row in zip(vectors.words, vectors.vectors, strict=True):
            data = row.astype("<f4").tobytes() if binary else (form % tuple(row.tolist())).encode()
            file.write(word.encode("utf-8") + b" " + data + b"\n")
    return path


class _Rows:
    """Collects the rows of a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dim = 0
        self.announced: int | None = None
        self.total = 0

    def announce(self, count: int, dim: int) -> None:
        """Set the number and size of vectors from the first line."""
        self.announced, self.dim = count, dim
        if count < 1 or dim < 1:
            raise FormatError(f"{self.path}:1", f"announces {count} vectors of size {dim}; expected at least 1 of each")

    def wants(self, data: bytes, where: str) -> str | None:
        """Return the next row's word if its numbers are wanted, else None."""
        self.total += 1
        try:
            word = data.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"has a word that is not UTF-8 (byte 0x{data[error.start]:02x}); convert the file"
            raise FormatError(where, what) from error
        if not word:
            raise FormatError(where, f"has no word; expected a word and {self.dim} numbers")
        return word if self._is_wanted(word) else None

    def keep(self, word: str, numbers: NDArray[np.float32], where: str) -> None:
        if not np.isfinite(numbers).all():
            raise FormatError(where, f"has a number for {word!r} that is not finite: fix the file or remove the line")
        self._keep(word, numbers)

    def result(self) -> WordVectors:
        """Return all rows, after the end of the file."""
        if self.total == 0:
            raise FormatError(self.path, "has no vectors; expected a word and its numbers on each line")
        if self.announced is not None and self.total != self.announced:
            raise FormatError(
                self.path, f"has {self.total:,} vectors; its first line announces {self.announced:,}: is it complete?"
            )
        return self._result()

    def _is_wanted(self, word: str) -> bool:
        raise NotImplementedError

    def _keep(self, word: str, numbers: NDArray[np.float32]) -> None:
        raise NotImplementedError

    def _result(self) -> WordVectors:
        raise NotImplementedError


class _WantedRows(_Rows):
    """Some rows, in the wanted order."""

    def __init__(self, path: Path, wanted: Collection[str]) -> None:
        super().__init__(path)
        self._wanted = list(dict.fromkeys(wanted))
        self._either = {*self._wanted, *(word.lower() for word in self._wanted)}
        self._found: dict[str, NDArray[np.float32]] = {}

    def _is_wanted(self, word: str) -> bool:
        return word in self._either and word not in self._found

    def _keep(self, word: str, numbers: NDArray[np.float32]) -> None:
        self._found[word] = numbers

    def _result(self) -> WordVectors:
        sources = {word: word if word in self._found else word.lower() for word in self._wanted}
        words = [word for word, source in sources.items() if source in self._found]
        vectors = np.empty((len(words), self.dim), dtype=np.float32)
        for row, word in enumerate(words):
            vectors[row] = self._found[sources[word]]
        return WordVectors(words, vectors, self.total, lowercased=sum(sources[word] != word for word in words))


class _AllRows(_Rows):
    """All rows, in the order of the file.

    The array grows in place by an eighth: the system moves large ones without copying, so that they are in memory once. The
    size that the first line announces is not trusted.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._words: dict[str, None] = {}
        self._vectors = np.empty(0, dtype=np.float32)

    def _is_wanted(self, word: str) -> bool:
        return word not in self._words

    def _keep(self, word: str, numbers: NDArray[np.float32]) -> None:
        count = len(self._words)
        begin = count * self.dim
        if begin == len(self._vectors):
            more = max(count // 8, _STEP // self.dim, 1)
            self._vectors.resize((count + more) * self.dim, refcheck=False)
        self._vectors[begin : begin + self.dim] = numbers
        self._words[word] = None

    def _result(self) -> WordVectors:
        self._vectors.resize(len(self._words) * self.dim, refcheck=False)
        return WordVectors(list(self._words), self._vectors.reshape(-1, self.dim), self.total)


def _read_text(lines: Iterator[bytes], rows: _Rows, *, line: int) -> None:
    """Read rows of text; the first is line number `line` of the file."""
    for number, row in enumerate(lines, start=line):
        if rows.dim == 0:
            what = "is not a row of word vectors; expected a word and its numbers, or two integers: count and size"
            raise FormatError(f"{rows.path}:{number}", what)
        _read_line(row.rstrip(b" \t\r"), rows, f"{rows.path}:{number}")


def _read_line(line: bytes, rows: _Rows, where: str) -> None:
    if line.count(b" ") == rows.dim:
        data, _, rest = line.partition(b" ")
        fields: list[bytes] | None = None
    else:  # tabs or several spaces, a word with spaces, or a wrong row
        data, fields = _split(line, rows.dim, where)
        rest = b""
    word = rows.wants(data, where)
    if word is None:
        return
    fields = rest.split(b" ") if fields is None else fields
    wrong = [field for field in fields if not _is_number(field)] if b"_" in line else []
    try:
        numbers = [] if wrong else list(map(float, fields))
    except ValueError:
        wrong = [field for field in fields if not _is_number(field)]
    if wrong:
        given = wrong[0][:40].decode("utf-8", "replace")
        raise FormatError(where, f"has a vector of {word!r} that is not a list of numbers ({given!r})")
    with np.errstate(over="ignore"):
        rows.keep(word, np.array(numbers, dtype=np.float64).astype(np.float32), where)


def _split(line: bytes, dim: int, where: str) -> tuple[bytes, list[bytes]]:
    """Split a line into the word and its numbers, the last `dim` fields; the word may have spaces."""
    parts = line.rsplit(None, dim)
    blanks = parts[0].split()[1:] if len(parts) == dim + 1 else []
    if len(parts) != dim + 1 or (blanks and _is_number(blanks[-1])):
        found = _count_numbers(line)
        raise FormatError(where, f"has {found} numbers; expected a word and {dim} numbers, as in the lines before")
    return parts[0], parts[1:]


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line; the first field is a word, whatever it looks like."""
    count = 0
    for field in reversed(line.split()[1:]):
        if not _is_number(field):
            break
        count += 1
    return count


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # Python's own 1_000 is none of foreign


def _is_binary(start: bytes, dim: int) -> bool:
    """Whether rows that begin like this are binary: no number in text, or bytes that text cannot have."""
    line, _, _ = start.partition(b"\n")
    found = _count_numbers(line)
    if found >= dim or (found == 0 and b" " in line):
        return found == 0
    raw = start.partition(b" ")[2][: 4 * dim]
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data":  # the sample may end inside a character
            return True
    return bool(_CONTROL.search(raw))


def _read_binary(stream: _Stream, rows: _Rows, count: int) -> None:
    for number in range(1, count + 1):
        where = f"{rows.path}: vector {number:,} of {count:,}"
        if not stream.more():
            raise FormatError(where, "is missing: is the file complete?")
        word = rows.wants(stream.until(b" ", where).lstrip(b"\n"), where)
        data = stream.take(4 * rows.dim)
        if len(data) < 4 * rows.dim:
            raise FormatError(where, f"has {len(data):,} bytes of numbers; expected {4 * rows.dim:,}: is the file complete?")
        if word is not None:
            rows.keep(word, np.frombuffer(data, dtype="<f4").astype(np.float32), where)
    if stream.take(2).strip(b"\r\n"):
        raise FormatError(rows.path, f"continues after the {count:,} vectors that its first line announces")


class _Stream:
    """The decompressed bytes of a file, read up to a separator or by number; a few blocks are in memory."""

    def __init__(self, path: Path) -> None:
        with wrap_os_errors(path, "read"), path.open("rb") as file:
            magic = file.read(8)
        if magic.startswith(ZIP):
            raise FormatError(path, "is a zip archive: unpack it and give the file of vectors in it")
        if magic.startswith(FASTTEXT):
            raise FormatError(path, "is a fastText model: give its vectors as text (the .vec file)")
        self._path = path
        self._blocks = decompress(path, str(path), magic)
        self._data, self._offset = b"", 0

    def more(self) -> bool:
        return self._offset < len(self._data) or self._fill()

    def peek(self, most: int) -> bytes:
        """Return at most `most` bytes without consuming them."""
        while len(self._data) - self._offset < most and self._fill():
            pass
        return self._data[self._offset : self._offset + most]

    def until(self, separator: bytes, where: str, *, end: bool = False) -> bytes:
        """Read up to and including a separator; with `end`, the end of the file counts as one."""
        begin = self._offset
        while (found := self._data.find(separator, begin)) < 0:
            seen = len(self._data) - self._offset
            if seen > MAX_LINE:
                raise FormatError(where, "does not end: is this a file of word vectors?")
            if not self._fill():
                if not end:
                    raise FormatError(where, "ends inside its word: is the file complete?")
                found = len(self._data)
                break
            begin = self._offset + seen
        data = self._data[self._offset : found]
        self._offset = found + len(separator)
        return data

    def line(self, number: int) -> bytes:
        """Read the next line, without its end; empty at the end of the file."""
        return self.until(b"\n", f"{self._path}:{number}", end=True)

    def lines(self, after: int) -> Iterator[bytes]:
        """Yield all lines to the end of the file; `after` were read before."""
        for number in itertools.count(after + 1):
            if not self.more():
                break
            yield self.line(number)

    def take(self, count: int) -> bytes:
        """Read `count` bytes, or what is left."""
        while len(self._data) - self._offset < count and self._fill():
            pass
        data = self._data[self._offset : self._offset + count]
        self._offset += len(data)
        return data

    def _fill(self) -> bool:
        block = next(self._blocks, b"")
        self._data, self._offset = self._data[self._offset :] + block, 0
        return bool(block)
