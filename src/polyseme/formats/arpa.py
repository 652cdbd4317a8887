"""N-gram models in ARPA files (SRILM, KenLM, CMU and others), plain or compressed with gzip, xz or zstd.

    \\data\\                          anything before this line is a comment
    ngram 1=4                       number of n-grams of each order
    ngram 2=2

    \\1-grams:
    -1.2   <s>      -0.3            log10 of the probability, the words, and log10 of the back-off weight, separated by
    -0.4   bank                     tabs or spaces; a missing weight is 0, which means 1

    \\end\\

Such files do not say how raw text is split into words. Ours do in a comment, unless it is white space: `# polyseme splitter:
english`. Other programs skip it (KenLM allows lines before the header only if they begin with #).

Sentences begin with `<s>` and end with `</s>`, and `<unk>` is the unknown word, in lower or upper case. A file without an
unknown word has a closed vocabulary. The first n - 1 words of every n-gram must be an n-gram of the file too.
"""

from __future__ import annotations

import gzip
import lzma
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import atomic, wrap_os_errors
from polyseme.encoders.config import NgramConfig
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.ngram_table import ZERO, Level, NgramTable
from polyseme.text.files.decompression import decompress
from polyseme.text.splitting.unigram import UNIGRAM
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter, splitter_names

_LOG10 = float(np.log(10))
_DATA, _END = b"\\data\\", b"\\end\\"
_HEAD = re.compile(rb"(?:\A|\n)[ \t]*\\data\\[ \t\r]*\n\s*ngram[ \t]")
_SPLITTER = re.compile(rb"# polyseme splitter: ([a-z-]{1,20})")
_COUNT = re.compile(rb"ngram[ \t]+(\d{1,2})[ \t]*=[ \t]*(\d{1,15})")
_SECTION = re.compile(rb"\\(\d{1,2})-grams:")
_SPECIAL_TOKENS = {"begin": ("<s>", "<S>"), "end": ("</s>", "</S>"), "unknown": ("<unk>", "<UNK>")}
_UNFIT = re.compile("\\A\\Z|[ \\t\\n\\v\\f\\r\ud800-\udfff]")
_BLOCK = 1 << 16  # n-grams per write


def is_arpa(path: str | Path) -> bool:
    """Whether the first quarter of a megabyte of a file has the two lines with which a model begins."""
    try:
        return _HEAD.search(next(_blocks(Path(path)), b"")) is not None
    except PolysemeError:
        return False


def read(path: str | Path) -> NgramModel:
    """Read the model of an ARPA file; raw text is split at white space unless the file says otherwise."""
    path = Path(path)
    lines = _Lines(path)
    words_of_text = _comments(lines)
    counts = _counts(lines)
    levels: list[Level] = []
    ids: dict[bytes, int] = {}
    for order, count in enumerate(counts, start=1):
        grams, *numbers = _section(lines, order, count, ids)
        levels.append(_level(grams, numbers, levels, len(ids), path))
    lines.expect(_END)
    words = [_decode(word, path) for word in ids]
    special = {name: next((token for token in names if token.encode() in ids), None) for name, names in _SPECIAL_TOKENS.items()}
    if special["begin"] is None or special["end"] is None:
        raise FormatError(path, "lacks <s> or </s> among its 1-grams, which begin and end every sentence")
    config = NgramConfig(order=len(counts), begin=special["begin"], end=special["end"], unknown=special["unknown"])
    vocabulary = Vocabulary(words, unknown=config.unknown, begin=config.begin, end=config.end)
    table = NgramTable(len(words), levels)
    return NgramModel(config, vocabulary=vocabulary, table=table, splitter=words_of_text).eval()


def write(model: NgramModel, path: str | Path) -> Path:
    """Write a model as an ARPA file, complete or absent; compressed if the name ends in .gz or .xz.

    Numbers have nine digits, so reading the file gives the same ones. The splitter is stored, except `unigram`, whose word
    list does not fit into such a file.
    """
    path = Path(path)
    words = []
    for word in model.vocabulary or ():
        if _UNFIT.search(word):
            raise PolysemeError(f"{word!r} cannot be in an ARPA file, where spaces separate the words")
        words.append(word.encode("utf-8"))
    with atomic(path) as part, _created(part, path.suffix.lower()) as file:
        if model.splitter.name not in ("whitespace", UNIGRAM):
            file.write(f"# polyseme splitter: {model.splitter.name}\n\n".encode())
        file.write(_DATA + b"\n")
        for order, level in enumerate(model.table.levels, start=1):
            file.write(f"ngram {order}={len(level)}\n".encode())
        for order in range(1, model.config.order + 1):
            file.write(f"\n\\{order}-grams:\n".encode())
            file.writelines(_rows(model.table, order, words))
        file.write(b"\n" + _END + b"\n")
    return path


def _created(path: Path, suffix: str) -> BinaryIO:
    """A new file, whose content is packed as the suffix of its later name says."""
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "wb", compresslevel=6))
    if suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "wb", preset=3))
    return path.open("wb")


def _rows(table: NgramTable, order: int, words: list[bytes]) -> Iterator[bytes]:
    """Yield the lines of one order; n-grams of the highest have no back-off weight."""
    level, grams = table.levels[order - 1], table.words(order)
    for begin in range(0, len(level), _BLOCK):
        some = slice(begin, begin + _BLOCK)
        numbers = (_log10s(level.log_probs[some]), _log10s(level.backoffs[some]))
        for probability, weight, ids in zip(*numbers, grams[some].tolist(), strict=True):
            text = b" ".join([words[place] for place in ids])
            last = b"" if order == table.order else b"\t%.9g" % weight
            yield b"%.9g\t%b%b\n" % (probability, text, last)


def _log10s(logs: NDArray[np.float32]) -> list[float]:
    """Convert natural logs to log10; zero is exactly -99, as other programs expect."""
    found: list[float] = np.where(logs <= np.float32(ZERO), -99.0, logs.astype(np.float64) / _LOG10).tolist()
    return found


class _Lines:
    """The lines of a file that are not blank, with their numbers."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self._lines = self._all()

    def __iter__(self) -> Iterator[bytes]:
        return self._lines

    @property
    def where(self) -> str:
        """The file and the line, for an error."""
        return f"{self.path}:{self.number}"

    def expect(self, what: bytes) -> None:
        """Raise unless the next line is this one."""
        line = next(self._lines, b"")
        if line != what:
            said = f"has {_shown(line)}" if line else "ends: is the file complete?"
            raise FormatError(self.where, f"{said}; expected {what.decode()}")

    def _all(self) -> Iterator[bytes]:
        rest = b""
        for block in _blocks(self.path):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                self.number += 1
                if line := line.strip():
                    yield line
        self.number += 1
        if line := rest.strip():
            yield line


def _blocks(path: Path) -> Iterator[bytes]:
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        magic = file.read(8)
    return decompress(path, str(path), magic)


def _comments(lines: _Lines) -> Splitter:
    """Return the splitter that the comments name, or white space; reads to the first line of the header."""
    found = "whitespace"
    for line in lines:
        if line == _DATA:
            return get_splitter(found)
        if (match := _SPLITTER.fullmatch(line)) and match[1].decode() in {*splitter_names()} - {UNIGRAM}:
            found = match[1].decode()
    raise FormatError(lines.path, "has no line \\data\\: is it an ARPA file?")


def _counts(lines: _Lines) -> list[int]:
    """Return the number of n-grams of each order; reads to the first section."""
    counts: list[int] = []
    for line in lines:
        match = _COUNT.fullmatch(line)
        if match is None:
            break
        if int(match[1]) != len(counts) + 1:
            raise FormatError(lines.where, f"counts {int(match[1])}-grams; expected {len(counts) + 1}-grams")
        counts.append(int(match[2]))
    else:
        raise FormatError(lines.where, "ends after its header: is the file complete?")
    section = _SECTION.fullmatch(line)
    if not counts or section is None or int(section[1]) != 1:
        raise FormatError(lines.where, f"has {_shown(line)}; expected ngram 1=... and \\1-grams:")
    return counts


def _section(
    lines: _Lines, order: int, count: int, ids: dict[bytes, int]
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Read the n-grams of an order as ids, (n, order), with probabilities and back-off weights; 1-grams fill `ids`."""
    grams, probabilities, weights = array("i"), array("d"), array("d")
    if order > 1:
        lines.expect(f"\\{order}-grams:".encode())
    for _, line in zip(range(count), lines, strict=False):
        number, *words = line.split()
        if len(words) not in (order, order + 1):
            what = f"has {_shown(line)}; expected a log-probability, {order} word{'s' * (order > 1)}, and a weight or none"
            raise FormatError(lines.where, f"{what} ({count:,} {order}-grams were announced)")
        try:
            probabilities.append(float(number))
            weights.append(float(words.pop()) if len(words) > order else 0.0)
        except ValueError:
            raise FormatError(lines.where, f"has {_shown(line)}; expected numbers around the words") from None
        try:
            grams.extend([ids[word] for word in words] if order > 1 else [ids.setdefault(words[0], len(ids))])
        except KeyError as error:
            raise FormatError(lines.where, f"has {_shown(error.args[0])}, which is not among the 1-grams") from None
    if len(probabilities) < count:
        raise FormatError(lines.path, f"holds {len(probabilities):,} {order}-grams; its header says {count:,}: is it complete?")
    found = np.frombuffer(grams, dtype=np.int32).reshape(-1, order)
    return found, _logs(probabilities, lines, order, 0.0), _logs(weights, lines, order, np.inf)


def _logs(values: array[float], lines: _Lines, order: int, most: float) -> NDArray[np.float32]:
    """Convert a section's log10s to natural logs."""
    numbers = np.maximum(np.frombuffer(values, dtype=np.float64) * _LOG10, ZERO)  # -inf means zero too
    if not (numbers <= most).all() or np.isinf(numbers).any():
        raise FormatError(lines.path, f"has {order}-grams with a log-probability above 0, or with numbers that are not finite")
    return numbers.astype(np.float32)


def _level(
    grams: NDArray[np.int32], numbers: Sequence[NDArray[np.float32]], below: list[Level], size: int, path: Path
) -> Level:
    """Sort the n-grams of an order, (n, order), as a table has them."""
    order = grams.shape[1]
    table = NgramTable(size, below)
    context = grams[:, 0].astype(np.int64) if order > 1 else np.zeros(len(grams), dtype=np.int64)
    for length in range(2, order):
        context = table.find(length, context, grams[:, length - 1].astype(np.int64))
    if len(context) and context.min() < 0:
        raise FormatError(path, f"has {order}-grams whose first {order - 1} words are no {order - 1}-gram of the file")
    keys = context * size + grams[:, -1]
    by_key = np.argsort(keys, kind="stable")
    keys = keys[by_key]
    if (keys[1:] == keys[:-1]).any():
        raise FormatError(path, f"has a {order}-gram more than once: fix the file")
    return Level(keys, numbers[0][by_key], numbers[1][by_key])


def _decode(word: bytes, path: Path) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(path, f"has {word!r}, which is not UTF-8; convert the file") from None


def _shown(line: bytes) -> str:
    text = line[:60].decode("utf-8", "replace")
    return repr(text + ("..." if len(line) > 60 else ""))
