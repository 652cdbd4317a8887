"""Packed files in blocks of plain bytes: gzip, xz and zstd (extra `zst`), told by their first bytes and not by name.

`decompress` reads a file that lies on a disk, `decompress_stream` one that is open already, such as a pipe.
"""

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

ENCODING_ADVICE = "save it as UTF-8 (iconv -f OLD -t UTF-8, with GB18030, LATIN1, LATIN2 or UTF-16 for OLD)"
"""What to do with a text that is in another encoding."""

_FOREIGN = {
    b"BZh": "is packed with bzip2; unpack it, or pack it with gzip, xz or zstd",
    b"PK\x03\x04": "is a zip file; unpack it, or pack the text with gzip, xz or zstd",
    b"\xff\xfe": f"is UTF-16, not UTF-8; {ENCODING_ADVICE}",
    b"\xfe\xff": f"is UTF-16, not UTF-8; {ENCODING_ADVICE}",
}


def is_compressed(magic: bytes) -> bool:
    """Whether a file that begins with these bytes is packed in a way that can be read."""
    return magic.startswith((GZIP, XZ, ZSTD))


def reject_unsupported(name: str, magic: bytes) -> None:
    """An error where a file that begins with these bytes is known to be no text in UTF-8, nor a packed one that can be read."""
    what = next((what for start, what in _FOREIGN.items() if magic.startswith(start)), None)
    if what is not None:
        raise FormatError(name, what)


def decompress(path: Path, name: str, magic: bytes) -> Iterator[bytes]:
    """The content in blocks; a packed file that is cut short or damaged is an error and not the end of the text."""
    with wrap_os_errors(name, "read"), path.open("rb") as file:
        yield from decompress_stream(file, name, magic)


def decompress_stream(file: BinaryIO, name: str, magic: bytes, size: int = BLOCK) -> Iterator[bytes]:
    """The same of an open file, from its first byte on, in blocks of about `size` bytes; the file is left open."""
    kinds = {GZIP: ("gzip", _gzip), XZ: ("xz", _xz), ZSTD: ("zstd", _zstd)}
    packing, blocks = next((kind for start, kind in kinds.items() if magic.startswith(start)), ("", _plain))
    with wrap_os_errors(name, "read"):
        try:
            yield from blocks(file, name, size)
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise FormatError(name, f"is a damaged {packing} file ({error})") from error


def _plain(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    yield from iter(lambda: file.read(size), b"")


def _gzip(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=file) as opened:
        yield from iter(lambda: opened.read(size), b"")


def _xz(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    with lzma.LZMAFile(file) as opened:
        yield from iter(lambda: opened.read(size), b"")


def _zstd(file: BinaryIO, name: str, size: int) -> Iterator[bytes]:
    """By hand and not by the package's stream reader, which takes a file that was cut short for a whole one."""
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(f"{name} is packed with zstd; reading it needs zstandard", "zst") from error
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


def line_blocks(blocks: Iterator[bytes], longest: int | None) -> Iterator[bytes]:
    """Blocks that end where a line ends; a line over `longest` bytes is cut at a blank or between two characters."""
    rest: list[bytes] = []
    held = 0
    for block in blocks:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, block[:cut]])
            rest, held = [], 0
        rest.append(block[cut:])
        held += len(rest[-1])
        if longest is not None and held > longest:
            data = b"".join(rest)
            cut = _cut(data)
            yield data[:cut]
            rest, held = [data[cut:]], len(data) - cut
    if held:
        yield b"".join(rest)


def _cut(data: bytes) -> int:
    blank = data.rfind(b" ", len(data) // 2)
    cut = blank if blank > 0 else len(data) - 1
    while cut > len(data) - 5 and data[cut] & 0xC0 == 0x80:  # inside a character of UTF-8
        cut -= 1
    return cut
