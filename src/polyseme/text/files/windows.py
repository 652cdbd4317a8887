"""Windows of a source: byte ranges of its files that can be read on their own, so that many machines can read one corpus.

Plain text and JSON lines are cut; a line belongs to the window in which it begins. A compressed, Parquet or UTF-16 file is one
window. All windows in order give the lines of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from polyseme.base.files import wrap_os_errors
from polyseme.text.files.decompression import BLOCK, is_compressed
from polyseme.text.files.encodings import wide_encoding
from polyseme.text.files.reader import PARQUET, Chunk, TextFile, read_chunks
from polyseme.text.files.sources import Source


@dataclass(frozen=True)
class Window:
    """A byte range of one file of a source."""

    file: TextFile
    number: int
    """Of the file in its source."""
    begin: int
    end: int | None
    """None: the whole file."""


def windows(source: Source, size: int) -> Iterator[Window]:
    """Yield the windows of all files, of about `size` bytes each."""
    for number, file in enumerate(source.files):
        with wrap_os_errors(file.name, "read"), file.path.open("rb") as opened:
            head = opened.read(1 << 12)
            total = file.path.stat().st_size
        if total <= size or head.startswith(PARQUET) or is_compressed(head) or wide_encoding(head):
            yield Window(file, number, 0, None)
            continue
        for begin in range(0, total, size):
            yield Window(file, number, begin, min(begin + size, total))


def read_window(window: Window, *, field: str, skip_bad: bool) -> Iterator[Chunk]:
    """Yield the lines of a window in chunks, as `read_chunks` does for a file."""
    file = window.file
    if window.end is None:
        yield from read_chunks(file, window.number, field=field, skip_bad=skip_bad)
        return
    with wrap_os_errors(file.name, "read"), file.path.open("rb") as opened:
        begin, end = line_start(opened, window.begin), line_start(opened, window.end)
        opened.seek(begin)
        blocks = _blocks(opened, max(end - begin, 0))
        yield from read_chunks(file, window.number, field=field, skip_bad=skip_bad, blocks=blocks, begun=begin > 0)


def line_start(file: BinaryIO, near: int) -> int:
    """Return where the first line begins at or after a byte; the end of the file if none does."""
    if near == 0:
        return 0
    file.seek(near - 1)
    position = near - 1
    while block := file.read(1 << 16):
        found = block.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(block)
    return position


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size and (data := file.read(min(BLOCK, size))):
        size -= len(data)
        yield data
