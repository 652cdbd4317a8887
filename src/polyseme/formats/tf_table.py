"""The sorted table of the index file of a TensorFlow checkpoint: keys and values, in blocks with checksums.

TensorFlow's tables are LevelDB's: at the end a footer names the index block, whose values name the data blocks; a key shares
its first bytes with the key before. Checkpoints are written without compression, and a compressed block is rejected. Values
are protocol buffers, of which `fields` reads the few kinds that a checkpoint has.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from polyseme.base.errors import FormatError
from polyseme.base.files import wrap_os_errors
from polyseme.formats.crc32c import crc32c, masked

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48  # bytes: two handles in 40, and the magic number
_TRAILER = 5  # bytes behind a block: its kind, and its checksum
_MAX_INDEX = 1 << 28  # bytes; that of an ELMo has some ten thousand


def is_table(path: Path) -> bool:
    """Whether a file is such a table, by its last bytes."""
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        size = file.seek(0, 2)
        if size < _FOOTER:
            return False
        file.seek(-len(_MAGIC), 2)
        return file.read() == _MAGIC


def read_table(path: Path) -> dict[bytes, bytes]:
    """Return all keys and values of a table."""
    with wrap_os_errors(path, "read"):
        size = path.stat().st_size
        if size > _MAX_INDEX:
            raise FormatError(path, f"has {size:,} bytes; an index of a checkpoint has at most {_MAX_INDEX:,}")
        data = path.read_bytes()
    if not data.endswith(_MAGIC) or len(data) < _FOOTER:
        raise FormatError(path, "is not the index of a TensorFlow checkpoint")
    try:
        footer = data[-_FOOTER:]
        _, place = _handle(footer, 0)
        (begin, length), _ = _handle(footer, place)
        handles = [_handle(value, 0)[0] for _, value in _entries(_block(data, begin, length))]
        return dict(entry for each in handles for entry in _entries(_block(data, *each)))
    except (IndexError, ValueError, struct.error) as error:
        raise FormatError(path, f"is a truncated or damaged index of a TensorFlow checkpoint ({error})") from error


def varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number of seven bits a byte; return it and the place behind it."""
    value = shift = 0
    while shift < 64:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
    raise ValueError("a number of more than 64 bits")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: their numbers, and numbers or bytes."""
    place = 0
    while place < len(data):
        tag, place = varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == 0:
            value, place = varint(data, place)
            yield number, value
            continue
        if kind == 2:
            size, place = varint(data, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of kind {kind}")
        if place + size > len(data):
            raise ValueError("a field that ends behind its message")
        content = data[place : place + size]
        yield number, content if kind == 2 else int.from_bytes(content, "little")
        place += size


def _handle(data: bytes, place: int) -> tuple[tuple[int, int], int]:
    """Offset and length of a block, and the place behind them."""
    offset, place = varint(data, place)
    length, place = varint(data, place)
    return (offset, length), place


def _block(data: bytes, offset: int, length: int) -> bytes:
    end = offset + length
    if end + _TRAILER > len(data) - _FOOTER:
        raise ValueError("a block that ends behind the file")
    kind, (checksum,) = data[end], struct.unpack_from("<I", data, end + 1)
    if checksum != masked(crc32c(data[offset : end + 1])):
        raise ValueError("a wrong checksum")
    if kind != 0:
        raise ValueError("a compressed block, which checkpoints do not have")
    return data[offset:end]


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a block; behind them it has places where keys are complete, for searching."""
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end, place, key = len(block) - 4 - 4 * restarts, 0, b""
    if end < 0:
        raise ValueError("a block of the wrong length")
    while place < end:
        shared, place = varint(block, place)
        own, place = varint(block, place)
        size, place = varint(block, place)
        if shared > len(key) or place + own + size > end:
            raise ValueError("an entry that ends behind its block")
        key = key[:shared] + block[place : place + own]
        yield key, block[place + own : place + own + size]
        place += own + size
