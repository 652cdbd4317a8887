"""Decompression of gzip, xz and zstd (extra `zst`) in blocks of bytes, recognised by the first bytes and not by name."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from polyseme.base.errors import FormatError, MissingExtraError
from polyseme.base.files import GZIP, wrap_os_errors

XZ, ZSTD = b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 18

ENCODING_ADVICE = (
    "save it as UTF-8 (iconv -f OLD -t UTF-8; OLD is CP1251 for Russian, SHIFT_JIS for Japanese, EUC-KR for Korean, BIG5 for "
    "traditional Chinese, GB18030 for simplified, CP1250 for Central European, ISO-8859-1 for Western)"
)
"""What to do with text in another encoding."""

_SAVE = "save labelled data as CSV, TSV or JSON lines, and texts alone as plain text, one per line"
_UNSUPPORTED = {
    b"BZh": "is compressed with bzip2; use gzip, xz or zstd, or decompress it",
    b"PK\x03\x04": "is a zip file; use gzip, xz or zstd, or extract the text",
    b"PAR1": f"is a Parquet file; {_SAVE}",
    b"\xd0\xcf\x11\xe0": f"is an Excel or Word file; {_SAVE}",
}
_ZIPPED = {".xlsx": "an Excel", ".xlsm": "an Excel", ".ods": "an OpenDocument", ".docx": "a Word", ".odt": "an OpenDocument"}
"""Names of documents that are zip files."""


def is_compressed(magic: bytes) -> bool:
    """Whether a file that begins with these bytes is compressed in a supported way."""
    return magic.startswith((GZIP, XZ, ZSTD))


def reject_unsupported(name: str, magic: bytes) -> None:
    """Raise an error if a file that begins with these bytes is compressed in another way, or no text."""
    document = _ZIPPED.get(Path(name).suffix.lower())
    if document and magic.startswith(b"PK"):
        raise FormatError(name, f"is {document} file; {_SAVE}")
    problem = next((problem for start, problem in _UNSUPPORTED.items() if magic.startswith(start)), None)
    if problem is not None:
        raise FormatError(name, problem)


def decompress(path: Path, name: str, magic: bytes) -> Iterator[bytes]:
    """Yield the content of a file in blocks; a truncated or damaged file is an error and not the end of the text."""
    with wrap_os_errors(name, "read"), path.open("rb") as file:
        yield from decompress_stream(file, name, magic, BLOCK)


def decompress_stream(file: BinaryIO, name: str, magic: bytes, size: int) -> Iterator[bytes]:
    """Yield the content of an open file, such as a pipe, in blocks of about `size` bytes; the file is left open."""
    kinds = {GZIP: ("gzip", _gzip), XZ: ("xz", _xz), ZSTD: ("zstd", _zstd)}
    kind, blocks = next((kind for start, kind in kinds.items() if magic.startswith(start)), ("", _plain))
    with wrap_os_errors(name, "read"):
        try:
            yield from blocks(file, name, size)
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise FormatError(name, f"is a damaged {kind} file ({error})") from error


def _plain(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    yield from iter(lambda: file.read(size), b"")


def _gzip(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as opened:
        yield from iter(lambda: opened.read(size), b"")


def _xz(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    with lzma.LZMAFile(file) as opened:
        yield from iter(lambda: opened.read(size), b"")


def _zstd(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """Without the package's own stream reader, which does not notice that a file is truncated."""
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(f"{name} is compressed with zstd; reading it needs zstandard", "zst") from error
    frame: Any = None
    try:
        for data in _plain(file, name, size):
            while data:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(data)
                data = frame.unused_data
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("the file ends before its text does")


def line_blocks(blocks: Iterator[bytes], max_line: int | None) -> Iterator[bytes]:
    """Yield blocks that end at a line end; a line over `max_line` bytes is cut at a space or between two characters."""
    rest: list[bytes] = []
    held = 0
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*rest, block[:end]])
            rest, held = [], 0
        rest.append(block[end:])
        held += len(rest[-1])
        if max_line is not None and held > max_line:
            data = b"".join(rest)
            end = _cut(data)
            yield data[:end]
            rest, held = [data[end:]], len(data) - end
    if held:
        yield b"".join(rest)


def _cut(data: bytes) -> int:
    space = data.rfind(b" ", len(data) // 2)
    end = space if space > 0 else len(data) - 1
    while end > len(data) - 5 and data[end] & 0xC0 == 0x80:  # inside a UTF-8 character
        end -= 1
    return end
