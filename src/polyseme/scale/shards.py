"""Text cut into shards: which bytes of which files are one unit of work, and so one part of a dataset.

A plain file is cut into windows of the shard size, and a line belongs to the window in which it begins; Parquet is cut between
row groups. Compressed text, CSV (whose rows may have line ends) and UTF-16 cannot be cut: such a file is one shard. Pieces that
follow each other share a shard as long as they fit, so that a hundred thousand small files are not as many parts. All this
depends only on the files and the shard size. A *scan*, which is work for the engine too, finds the exact range of each piece,
counts its lines and hashes it: so every line has its number before any is embedded, and a changed text is noticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

from polyseme.base.hashing import hash_json
from polyseme.scale.addresses import InputFile, open_input, remote_errors
from polyseme.scale.parquet_input import parquet_file
from polyseme.text.files.decompression import is_compressed
from polyseme.text.files.encodings import wide_encoding
from polyseme.text.files.reader import PARQUET

Kind = Literal["lines", "json", "csv", "parquet"]
_HEAD = 1 << 12  # bytes that show what a file is


@dataclass(frozen=True)
class Piece:
    """Some lines of one file."""

    file: str
    """Its name, for people."""
    address: str = field(repr=False)
    """For opening; may hold a secret."""
    kind: Kind
    begin: int
    """First byte; of Parquet the first row group."""
    end: int | None
    """The byte after the last, or the row group; None: to the end of the file."""
    size: int
    """In bytes; about, until it is scanned."""
    first: int = 0
    """Number of its first line in the file, from 0."""
    lines: int = 0
    sha256: str = ""
    """Of its bytes; of Parquet that of its texts."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "address"}


@dataclass(frozen=True)
class Shard:
    """One unit of work, and one part of a dataset."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def name(self) -> str:
        """The file name of its part."""
        return f"part-{self.number:06}.parquet"

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)

    @property
    def lines(self) -> int:
        return sum(piece.lines for piece in self.pieces)

    @property
    def sha256(self) -> str:
        """Of its pieces: their files, lines and content."""
        return hash_json([[piece.file, piece.kind, piece.first, piece.lines, piece.sha256] for piece in self.pieces])

    def to_json(self) -> dict[str, Any]:
        return {"part": self.name, "sha256": self.sha256, "pieces": [piece.to_json() for piece in self.pieces]}


def cut(files: Sequence[InputFile], shard_size: int, field_given: bool = False) -> list[Shard]:
    """Return the shards of files, not scanned yet."""
    shards: list[Shard] = []
    some: list[Piece] = []
    size = 0
    for piece in (piece for file in files for piece in _pieces(file, shard_size, field_given)):
        if some and size + piece.size > shard_size:
            shards.append(Shard(len(shards), tuple(some)))
            some, size = [], 0
        some.append(piece)
        size += piece.size
    if some:
        shards.append(Shard(len(shards), tuple(some)))
    return shards


def numbered(shards: Iterable[Shard]) -> list[Shard]:
    """Return scanned shards with the number of each piece's first line."""
    result, last, line = [], "", 0
    for shard in shards:
        pieces = []
        for piece in shard.pieces:
            line = line if piece.address == last else 0
            pieces.append(dataclasses.replace(piece, first=line))
            last, line = piece.address, line + piece.lines
        result.append(Shard(shard.number, tuple(pieces)))
    return result


def _pieces(file: InputFile, shard_size: int, field_given: bool) -> Iterator[Piece]:
    kind = _kind_by_name(file.name, field_given)
    whole = Piece(file.name, file.address, kind, 0, None, file.size or 0)
    if file.size is not None and file.size <= shard_size:  # one piece, whatever it is: not opened yet
        yield whole
        return
    with open_input(file.address, file.name) as opened, remote_errors(file.address, file.name):
        head = opened.read(_HEAD)
        if head.startswith(PARQUET):
            yield from _row_groups(dataclasses.replace(whole, kind="parquet"), opened, shard_size)
            return
    if file.size is None or kind in ("csv", "parquet") or is_compressed(head) or wide_encoding(head):
        yield whole
        return
    for begin in range(0, file.size, shard_size):
        end = min(begin + shard_size, file.size)
        yield dataclasses.replace(whole, begin=begin, end=end, size=end - begin)


def _kind_by_name(name: str, field_given: bool) -> Kind:
    suffixes = {suffix.lower() for suffix in PurePosixPath(name).suffixes}
    if ".parquet" in suffixes:
        return "parquet"
    if suffixes & {".csv", ".tsv"}:
        return "csv"
    return "json" if suffixes & {".jsonl", ".ndjson"} or (field_given and ".json" in suffixes) else "lines"


def _row_groups(whole: Piece, opened: Any, shard_size: int) -> Iterator[Piece]:
    """Yield runs of row groups of about the shard size."""
    begin = size = 0
    with parquet_file(opened, whole.file) as table:
        count = table.num_row_groups
        for number in range(count):
            size += table.metadata.row_group(number).total_byte_size
            if size >= shard_size or number == count - 1:
                yield dataclasses.replace(whole, begin=begin, end=number + 1, size=size)
                begin, size = number + 1, 0
