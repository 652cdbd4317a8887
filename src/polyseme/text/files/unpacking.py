"""Packed files in blocks of plain bytes: gzip, xz and zstd (extra `zst`), told by their first bytes and not by name."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, MissingExtraError
from polyseme.base.files import GZIP, telling

XZ, ZSTD = b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 18


def unpacked(path: Path, name: str, magic: bytes) -> Iterator[bytes]:
    """The content in blocks; a packed file that is cut short or damaged is an error and not the end of the text."""
    kinds = {GZIP: ("gzip", _gzip), XZ: ("xz", _xz), ZSTD: ("zstd", _zstd)}
    packing, blocks = next((kind for start, kind in kinds.items() if magic.startswith(start)), ("", _plain))
    with telling(name, "read"):
        try:
            yield from blocks(path)
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise FormatError(name, f"is a damaged {packing} file ({error})") from error


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def _gzip(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def _xz(path: Path) -> Iterator[bytes]:
    with lzma.open(path) as file:
        yield from iter(lambda: file.read(BLOCK), b"")


def _zstd(path: Path) -> Iterator[bytes]:
    """By hand and not by the package's stream reader, which takes a file that was cut short for a whole one."""
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(f"{path} is packed with zstd; reading it needs zstandard", "zst") from error
    frame: Any = None
    try:
        for data in _plain(path):
            while data:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(data)
                data = frame.unused_data
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if frame is not None:
        raise EOFError("the file ends before its text does")


def whole_lines(blocks: Iterator[bytes], longest: int | None) -> Iterator[bytes]:
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
