"""The rows of a piece of a file: one text per line of plain text, per JSON line, or per row of CSV and Parquet.

Blank lines are rows with an empty text, so that row and line numbers agree. All bytes that are read are hashed on the way.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from polyseme.base.display import count
from polyseme.base.errors import FormatError, arg, nearest
from polyseme.scale.addresses import open_input, remote_errors
from polyseme.scale.parquet_input import parquet_file
from polyseme.scale.shards import Piece
from polyseme.text.files.decompression import is_compressed
from polyseme.text.files.encodings import wide_encoding
from polyseme.text.files.lines import decoded
from polyseme.text.files.reader import PARQUET
from polyseme.text.labelled.csv_rows import SEPARATORS, csv_reader, separator_of

_BLOCK = 1 << 20


class Row(NamedTuple):
    """One text and where it stands."""

    file: str
    line: int
    """From 0."""
    text: str


class PieceReader:
    """The rows of a piece; after the last of them, `sha256` is known."""

    def __init__(self, piece: Piece, column: str = "text") -> None:
        self.piece, self.column = piece, column
        self.sha256 = ""
        self.lines = 0

    def __iter__(self) -> Iterator[Row]:
        with opened_piece(self.piece) as (range_, raw):
            if is_parquet(self.piece, raw):
                texts, digest = self._parquet(raw), None
            else:
                texts, digest = self._texts(range_), range_.hash
            hashed = hashlib.sha256()
            for text in texts:
                if digest is None:
                    data = text.encode("utf-8", "surrogatepass")
                    hashed.update(len(data).to_bytes(8, "little") + data)
                yield Row(self.piece.file, self.piece.first + self.lines, text)
                self.lines += 1
            if digest is not None:
                range_.drain()
            self.sha256 = (digest or hashed).hexdigest()

    def count(self) -> None:
        """Count lines and hash, as quickly as the kind of the file allows."""
        if self.piece.kind in ("lines", "json"):
            with opened_piece(self.piece) as (range_, raw):
                head = range_.peek()
                if not (is_parquet(self.piece, raw) or is_compressed(head) or wide_encoding(head)):
                    last = b"\n"
                    while block := range_.read(_BLOCK):
                        self.lines, last = self.lines + block.count(b"\n"), block[-1:]
                    self.lines += last != b"\n"
                    self.sha256 = range_.hash.hexdigest()
                    return
        for _ in self:
            pass

    def _texts(self, file: BytesRange) -> Iterator[str]:
        lines = decoded(io.BufferedReader(file, _BLOCK), self.piece.file, first=self.piece.first)
        if self.piece.kind == "json":
            return self._json(lines)
        return self._csv(lines) if self.piece.kind == "csv" else lines

    def _json(self, lines: Iterable[str]) -> Iterator[str]:
        for number, line in enumerate(lines, self.piece.first + 1):
            if not line.strip():
                yield ""
                continue
            where = f"{self.piece.file}:{number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise FormatError(where, f"is not valid JSON ({error})") from error
            text = row.get(self.column) if isinstance(row, dict) else None
            if not isinstance(text, str):
                known = nearest(self.column, row) if isinstance(row, dict) else ""
                raise FormatError(where, f"has no text in the field {self.column!r}{known}")
            yield text

    def _csv(self, lines: Iterator[str]) -> Iterator[str]:
        first = next(lines, "")
        rows = csv_reader((f"{line}\n" for line in itertools.chain([first], lines)), self._separator(first))
        try:
            header: list[str] = next(rows, [])
            if self.column not in header:
                raise FormatError(
                    self.piece.file,
                    f"has no column {self.column!r} in its first line{nearest(self.column, header)}; give {arg('field')}",
                )
            column = header.index(self.column)
            for row in rows:
                if row and column >= len(row):
                    where = f"{self.piece.file}:{rows.line_num}"
                    raise FormatError(where, f"has {count(len(row), 'column')}; the text is in column {column + 1}")
                yield row[column] if row else ""
        except csv.Error as error:
            raise FormatError(f"{self.piece.file}:{rows.line_num}", f"is not valid CSV ({error})") from error

    def _separator(self, first: str) -> str:
        """Return what separates the cells of CSV: a sign that shows the column of the text in the first line, if any does."""
        tabs = ".tsv" in {suffix.lower() for suffix in PurePosixPath(self.piece.file).suffixes}
        signs = ("\t", *SEPARATORS) if tabs else SEPARATORS
        return next((each for each in signs if self.column in next(csv_reader([first], each), [])), separator_of([first]))

    def _parquet(self, raw: Any) -> Iterator[str]:
        with parquet_file(raw, self.piece.file) as table:
            names = table.schema_arrow.names
            if self.column not in names:
                known = nearest(self.column, names)
                raise FormatError(self.piece.file, f"has no column {self.column!r}{known}; give {arg('field')}")
            end = table.num_row_groups if self.piece.end is None else self.piece.end
            groups = list(range(self.piece.begin, end))
            for batch in table.iter_batches(batch_size=256, row_groups=groups, columns=[self.column]) if groups else ():
                for text in batch.column(0).to_pylist():
                    if not isinstance(text, str | None):
                        raise FormatError(
                            self.piece.file, f"has {batch.column(0).type} in the column {self.column!r}; expected text"
                        )
                    yield text or ""


def rows_of(pieces: Iterable[Piece], column: str = "text") -> Iterator[Row]:
    """Yield the rows of pieces; a piece whose content is not what was scanned is an error."""
    for piece in pieces:
        reader = PieceReader(piece, column)
        yield from reader
        if piece.sha256 and reader.sha256 != piece.sha256:
            raise FormatError(piece.file, "has changed since the run began: start again when no other program writes to it")


class BytesRange(io.RawIOBase):
    """Bytes [begin, end) of a file, hashed as they are read."""

    def __init__(self, file: BinaryIO, begin: int, end: int | None) -> None:
        self._file, self._left = file, None if end is None else max(end - begin, 0)
        self._ahead = b""
        self.hash = hashlib.sha256()
        file.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data, self._ahead = self._ahead[: len(buffer)], self._ahead[len(buffer) :]
        data = data or self._take(len(buffer))
        self.hash.update(data)
        buffer[: len(data)] = data
        return len(data)

    def peek(self) -> bytes:
        """Return the first bytes without taking them."""
        self._ahead = self._ahead or self._take(1 << 12)
        return self._ahead

    def drain(self) -> None:
        """Read to the end, so that all is hashed."""
        while self.read(_BLOCK):
            pass

    def _take(self, size: int) -> bytes:
        size = size if self._left is None else min(size, self._left)
        data = self._file.read(size) if size else b""
        if self._left is not None:
            self._left -= len(data)
        return data


@contextmanager
def opened_piece(piece: Piece) -> Iterator[tuple[BytesRange, BinaryIO]]:
    """Open a piece: its bytes, and the whole file for what needs to seek."""
    with remote_errors(piece.address, piece.file), open_input(piece.address, piece.file) as raw:
        parquet = piece.kind == "parquet"  # whose range is of row groups
        yield BytesRange(raw, 0 if parquet else piece.begin, None if parquet else piece.end), raw


def is_parquet(piece: Piece, raw: BinaryIO) -> bool:
    """Whether a piece is of a Parquet file: by name, or by content if it is a whole file."""
    if piece.kind == "parquet" or piece.end is not None:
        return piece.kind == "parquet"
    place = raw.tell()
    raw.seek(0)
    found = raw.read(len(PARQUET)) == PARQUET
    raw.seek(place)
    return found
