"""Lines of input: from the command line, a file or standard input, one at a time."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.base.files import is_pipe, wrap_os_errors
from polyseme.text.files.decompression import decompress_stream, is_compressed, line_blocks, reject_unsupported

_MAGIC = 8
"""Bytes that tell how a file is packed."""


class Lines(Protocol):
    """Lines that can be gone over again, if their source can."""

    def __iter__(self) -> Iterator[str]:
        """From the first line on."""

    def total(self) -> int | None:
        """How many there are, where that is cheap to know."""


def lines_of(texts: Sequence[str] | None, path: Path | None) -> Lines:
    """What the user gave: texts, a file, or standard input when there is neither."""
    if texts and path is not None:
        raise UsageError("give either TEXT or --input FILE, not both")
    if texts:
        return TextLines(texts)
    if path is not None and str(path) != "-":
        with wrap_os_errors(path, "read"):
            if is_pipe(path):
                return PipedLines(path.open("rb"), str(path))
            path.open("rb").close()
        return FileLines(path)
    if sys.stdin is None:
        raise UsageError("standard input is closed: add TEXT or --input FILE")
    if path is None and sys.stdin.isatty():
        raise UsageError("no text given: add TEXT, --input FILE, or pipe text in")
    return PipedLines(sys.stdin.buffer, "standard input")


class TextLines:
    """Arguments; each is one line."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def total(self) -> int:
        return len(self._texts)


class FileLines:
    """A file of UTF-8 text, plain or packed with gzip, xz or zstd (told by content)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        with wrap_os_errors(self._path, "read"), self._path.open("rb") as file:
            yield from decoded(file, str(self._path))

    def total(self) -> int | None:
        count, last = 0, b"\n"
        with wrap_os_errors(self._path, "read"), self._path.open("rb") as file:
            if not self._path.is_file() or is_compressed(file.peek(_MAGIC)[:_MAGIC]):
                return None
            while block := file.read(1 << 20):
                count, last = count + block.count(b"\n"), block[-1:]
        return count + (last != b"\n")


class PipedLines:
    """Standard input or a named pipe, which can be read only once."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._read = file, name, False

    def __iter__(self) -> Iterator[str]:
        if self._read:
            raise PolysemeError(
                f"{self._name} does not begin with the lines of the stopped run, and has been read by now: "
                "remove the .part folder and run the command again"
            )
        self._read = True
        return decoded(self._file, self._name)

    def total(self) -> None:
        return None


def decoded(file: BinaryIO, name: str) -> Iterator[str]:
    """Lines of a binary file as text, without line ends; a line that is not UTF-8 is told by its number."""
    magic = cast(io.BufferedReader, file).peek(_MAGIC)[:_MAGIC]
    reject_unsupported(name, magic)
    number = 0
    try:
        for number, data in enumerate(_packed_lines(file, name, magic) if is_compressed(magic) else file, start=1):
            text = data.decode("utf-8")
            text = text.removeprefix("\ufeff") if number == 1 else text
            yield text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 (byte 0x{error.object[error.start]:02x}); convert the text"
        raise FormatError(f"{name}:{number}", what) from error


def _packed_lines(file: BinaryIO, name: str, magic: bytes) -> Iterator[bytes]:
    """In small blocks, because lines of a pipe are wanted as they come."""
    for block in line_blocks(decompress_stream(file, name, magic, io.DEFAULT_BUFFER_SIZE), None):
        yield from io.BytesIO(block)
