"""Vectors as npz: a zip file with one uncompressed NumPy array for each line.

NumPy's `savez` and Python's `zipfile` keep the table of contents (and `savez` the arrays) in memory until the end and cannot
resume after a kill. A zip file is a sequence of entries, then the table of contents: so entries are only appended, and at the
end a second pass over them writes the table in constant memory.

Layout: PKWARE's APPNOTE.TXT, 4.3.7 (entry), 4.3.12 (table), 4.3.14-16 (end), 4.5.3 (sizes over 4 GiB).
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from polyseme.encoders.embedding_stream import EmbeddedLine
from polyseme.formats.vectors.append_file import AppendWriter
from polyseme.formats.vectors.writer import BetweenSteps, nothing

_ENTRY = struct.Struct("<4s5H3I2H")  # signature, version, flags, method, time, date, crc, packed, size, name, extra
_LISTED = struct.Struct("<4s6H3I5H2I")
_LARGE_SIZES = struct.Struct("<2H2Q")  # extra field of an entry: id 1, length 16, size, packed size
_LARGE_LISTED = struct.Struct("<2H3Q")  # the same in the table, with the entry's offset
_END = struct.Struct("<4s4H2IH")
_LARGE_END = struct.Struct("<4sQ2H2I4Q")
_LARGE_END_LOCATOR = struct.Struct("<4sIQI")
_VERSION, _DATE = 45, 0x21  # version needed to extract (large files); 1 January 1980, the zip format's epoch
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF


class NpzWriter(AppendWriter):
    """One array per line: "0.npy", "1.npy", ..."""

    name = "data.npz"

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        for row in rows:
            vectors = np.ascontiguousarray(row.vectors)
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(vectors))
            self._add(f"{row.line}.npy", head.getvalue(), vectors.reshape(-1).view(np.uint8).data)

    def _add(self, name: str, head: bytes, body: memoryview) -> None:
        size = len(head) + body.nbytes
        crc = zlib.crc32(body, zlib.crc32(head))
        title = name.encode("ascii")
        extra = _LARGE_SIZES.pack(1, 16, size, size)
        self.file.write(_ENTRY.pack(b"PK\3\4", _VERSION, 0, 0, 0, _DATE, crc, _FULL32, _FULL32, len(title), len(extra)))
        self.file.write(title + extra + head)
        self.file.write(body)

    def finish(self, between: BetweenSteps = nothing) -> Path:
        begin = self.file.tell()
        count = 0
        with self.path.open("rb") as entries:
            for entry in _contents(entries, begin):
                between()
                self.file.write(entry)
                count += 1
        end = self.file.tell()
        if count >= _FULL16 or end >= _FULL32:
            large = _LARGE_END.pack(b"PK\6\6", 44, _VERSION, _VERSION, 0, 0, count, count, end - begin, begin)
            self.file.write(large + _LARGE_END_LOCATOR.pack(b"PK\6\7", 0, end, 1))
        short = min(count, _FULL16)
        self.file.write(_END.pack(b"PK\5\6", 0, 0, short, short, min(end - begin, _FULL32), min(begin, _FULL32), 0))
        self.commit()
        return self.path


def _contents(entries: BinaryIO, end: int) -> Iterator[bytes]:
    """Yield the table of contents of our own entries before `end`."""
    offset = 0
    while offset < end:
        entries.seek(offset)
        _, version, flags, method, time, date, crc, _, _, width, extra = _ENTRY.unpack(entries.read(_ENTRY.size))
        name = entries.read(width)
        _, _, size, packed = _LARGE_SIZES.unpack(entries.read(extra))
        more = _LARGE_LISTED.pack(1, 24, size, packed, offset)
        sizes = (crc, _FULL32, _FULL32, width, len(more))
        head = (b"PK\1\2", version, version, flags, method, time, date, *sizes, 0, 0, 0, 0, _FULL32)
        yield _LISTED.pack(*head) + name + more
        offset = entries.seek(size, os.SEEK_CUR)
