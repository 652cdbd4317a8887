"""Lines of input: texts, a file, a named pipe or standard input, one line at a time."""

from __future__ import annotations

import io
import logging
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.base.files import is_pipe, wrap_os_errors
from polyseme.text.files.decompression import decompress_stream, is_compressed, line_blocks, reject_unsupported
from polyseme.text.files.encodings import (
    as_utf8,
    decode_narrow,
    encoding_advice,
    is_western,
    narrow_encoding,
    report_encoding,
    wide_encoding,
)

_log = logging.getLogger(__name__)
_MAGIC = 8
"""Bytes that show how a file is compressed."""
_SAMPLE = 1000
"""Lines by which an encoding other than UTF-8 is recognised."""


TABLE_NAMES = re.compile(r"\.(csv|tsv|jsonl?)(\.(gz|xz|zst))?$", re.IGNORECASE)
"""Names of files whose lines are rows; in .tsv files they may be the texts of a pair."""
_FILE_NAME = re.compile(r"\S+\.(txt|csv|tsv|jsonl?|ndjson|parquet|conllu?|gz|xz|zst)", re.IGNORECASE)
"""A word that is meant as the name of a file, and hardly ever as a text."""


class Lines(Protocol):
    """Lines that can be read again, if their source can."""

    name: str
    """Source of the lines, for messages."""

    def __iter__(self) -> Iterator[str]:
        """Iterate from the first line."""

    def total(self) -> int | None:
        """Return the number of lines, where that is cheap to know."""


def lines_of(texts: Sequence[str] | None, path: str | Path | None, *, warn_tables: bool = True) -> Lines:
    """Return the given texts, the lines of a file, or standard input where neither is given.

    `warn_tables`: warn of a file that is a table by its name; its lines would be read as texts.
    """
    if texts and path is not None:
        raise UsageError(f"the text is given twice, as TEXT and as {arg('input')}: give one of them")
    if texts:
        if len(texts) == 1:
            _warn_of_file_name(texts[0])
        return TextLines(texts)
    if path is not None:
        return file_lines(path, warn_tables=warn_tables)
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"no text given: add TEXT or {arg('input', 'FILE')}, or pipe text in")
    return file_lines("-")


def read_as_text(table: str | Path) -> str:
    """Return that the rows of a table are read as texts."""
    return f"{table} is read as plain text, one text per line, with its header and all its columns"


def not_plain_text(name: str, kind: str) -> str:
    """Return that a file is a table, where texts to predict are expected."""
    advice = f"name its column with {arg('text')}, or give a file of the texts alone"
    return f"{name} is {kind}; expected plain text, one text per line: {advice}"


def _warn_of_file_name(text: str) -> None:
    if _is_file(text):
        _log.warning("%s is read as a text; to read the file of this name, give %s", text, arg("input", text))
    elif _FILE_NAME.fullmatch(text):
        what = "is read as a text, and there is no file of this name; to read a file, give"
        _log.warning("%s %s %s", text, what, arg("input"))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null character
        return False


def file_lines(path: str | Path, *, warn_tables: bool = True) -> Lines:
    """Return the lines of a file, plain or compressed; `-` is standard input."""
    if str(path) == "-":
        if sys.stdin is None:
            raise UsageError(f"standard input is closed: add TEXT or {arg('input', 'FILE')}")
        return PipedLines(sys.stdin.buffer, "standard input")
    path = Path(path)
    with wrap_os_errors(path, "read"):
        if is_pipe(path):
            return PipedLines(path.open("rb"), str(path))
        if path.is_dir():
            raise FormatError(path, "is a folder; expected a file with one text on each line, or a table")
        path.open("rb").close()
    if warn_tables and (table := TABLE_NAMES.search(path.name)) and table[1].lower() != "tsv":
        column = f"polyseme embed --input {shlex.quote(str(path))} --field COLUMN --pooling mean --out FOLDER"
        advice = f"give a file of the texts alone (`{column}` reads a column and gives a vector for each text)"
        _log.warning("%s; %s", read_as_text(path), advice)
    return FileLines(path)


class TextLines:
    """Texts in memory; each is one line."""

    name = "TEXT"

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def total(self) -> int:
        return len(self._texts)


class TableLines(TextLines):
    """The texts of a table, one line for each row."""

    def __init__(self, texts: Sequence[str], name: str, numbers: Sequence[int], columns: Mapping[str, Any]) -> None:
        super().__init__(texts)
        self.name, self.numbers, self.columns = name, numbers, columns
        """`numbers`: the line of the file on which each row begins, (rows,); `columns`: the options by which it was read."""


class FileLines:
    """A file of text, plain or compressed with gzip, xz or zstd (detected by content, as its encoding is)."""

    def __init__(self, path: Path) -> None:
        self._path, self.name = path, str(path)

    def __iter__(self) -> Iterator[str]:
        with wrap_os_errors(self._path, "read"), self._path.open("rb") as file:
            yield from decoded(file, self.name)

    def total(self) -> int | None:
        count, last = 0, b"\n"
        with wrap_os_errors(self._path, "read"), self._path.open("rb") as file:
            head = file.peek(_MAGIC)
            if not self._path.is_file() or is_compressed(head[:_MAGIC]) or wide_encoding(head):
                return None
            while block := file.read(1 << 20):
                count, last = count + block.count(b"\n"), block[-1:]
        return count + (last != b"\n")


class PipedLines:
    """Standard input or a named pipe, which can be read only once."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name, self._read = file, name, False

    def __iter__(self) -> Iterator[str]:
        if self._read:
            raise PolysemeError(
                f"{self.name} does not begin with the lines of the interrupted run and cannot be read twice: "
                "remove the .part folder and run the command again"
            )
        self._read = True
        return decoded(self._file, self.name)

    def total(self) -> None:
        return None


def decoded(file: BinaryIO, name: str, *, first: int = 0) -> Iterator[str]:
    """Decode the lines of a binary file, without line ends; an error names the line whose encoding is not known.

    `first`: number of the first line, from 0, where the file is part of a larger one.
    """
    head = cast(io.BufferedReader, file).peek(_MAGIC)
    magic = head[:_MAGIC]
    reject_unsupported(name, magic)
    lines: Iterator[bytes] = file
    if is_compressed(magic) or wide_encoding(head):
        lines = _unpacked_lines(file, name, magic)
    good = 0
    for number, data in enumerate(lines, first):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            yield from _in_other_encoding(enumerate(chain([data], lines), number + 1), name, good, error)
            return
        good += not text.isascii()
        text = text if number else text.removeprefix("\ufeff")
        yield text.removesuffix("\n").removesuffix("\r")


def _in_other_encoding(lines: Iterator[tuple[int, bytes]], name: str, good: int, error: UnicodeDecodeError) -> Iterator[str]:
    """Decode lines from the first that is not UTF-8 on; in a file of UTF-8, single lines may be cp1252."""
    head = list(islice(lines, _SAMPLE))
    encoding = narrow_encoding((data for _, data in head), good=good)
    if encoding is not None:
        report_encoding(name, encoding)
    slips = 0
    for number, data in chain(head, lines):
        try:
            text: str | None = data.decode("utf-8") if encoding is None else decode_narrow(data, encoding)
        except UnicodeDecodeError as problem:
            text, error, slips = (decode_narrow(data, "cp1252") if is_western(data) else None), problem, slips + 1
        if text is None:
            what = f"is not UTF-8 (byte 0x{error.object[error.start]:02x}); {encoding_advice(data for _, data in head)}"
            raise FormatError(f"{name}:{number}", what) from error
        yield text.removesuffix("\n").removesuffix("\r")
    if slips:
        _log.warning("%s: %d lines are not UTF-8, as the others are; read as cp1252 (Latin-1)", name, slips)


def _unpacked_lines(file: BinaryIO, name: str, magic: bytes) -> Iterator[bytes]:
    """Decompress in small blocks, because lines of a pipe are wanted as they come."""
    for block in line_blocks(as_utf8(decompress_stream(file, name, magic, io.DEFAULT_BUFFER_SIZE), name), None):
        yield from io.BytesIO(block)
