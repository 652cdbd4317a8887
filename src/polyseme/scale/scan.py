"""The scan: exact byte ranges, line counts and hashes of all shards, before any line is embedded."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from polyseme.scale.addresses import open_input, remote_errors
from polyseme.scale.rows import PieceReader
from polyseme.scale.shards import Piece, Shard
from polyseme.text.files.windows import line_start


@dataclass(frozen=True)
class Scan:
    """Work on a shard that gives the same shard, scanned."""

    column: str

    def start(self) -> Callable[[Shard], Shard]:
        return self.scan

    def scan(self, shard: Shard) -> Shard:
        return Shard(shard.number, tuple(self._piece(piece) for piece in shard.pieces))

    def _piece(self, piece: Piece) -> Piece:
        piece = exact(piece)
        reader = PieceReader(piece, self.column)
        reader.count()
        return dataclasses.replace(piece, lines=reader.lines, sha256=reader.sha256)


def exact(piece: Piece) -> Piece:
    """Return a piece whose window begins and ends at the beginnings of lines."""
    if piece.end is None or piece.kind == "parquet":
        return piece
    with open_input(piece.address, piece.file) as file, remote_errors(piece.address, piece.file):
        begin, end = line_start(file, piece.begin), line_start(file, piece.end)
    return dataclasses.replace(piece, begin=begin, end=max(begin, end), size=max(end - begin, 0))
