"""One file of text, read some lines at a time: a line is a paragraph.

Parquet is told by its first bytes, as packing is, never by the name; JSON lines have no such bytes and
go by `.jsonl` or `.ndjson` in the name, or by a field that somebody names. Lines end at "\\n" only, because the other line ends
of Unicode stand inside paragraphs of real corpora. Blocks of a quarter of a megabyte are decoded at once and line by line only
where that fails, which is several times faster than a text file's own iterator and still names the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from polyseme.base.errors import FormatError, MissingExtraError, nearest
from polyseme.base.files import wrap_os_errors
from polyseme.text.files.decompression import ENCODING_ADVICE, decompress, line_blocks, reject_unsupported

PARQUET = b"PAR1"
_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_LINE_BYTES = 1 << 23
"""Bytes of a line of plain text after which it is cut: a file without line ends must not fill the memory."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file, and what to call it."""

    path: Path
    title: str | None = None
    json: bool = False
    """Whether it is known to be JSON lines, whatever its name."""

    @property
    def name(self) -> str:
        """As the user knows it."""
        return self.title or str(self.path)

    @property
    def holds_json(self) -> bool:
        """Whether it is JSON lines, packed or not."""
        return self.json or bool({".jsonl", ".ndjson"} & {suffix.lower() for suffix in self.path.suffixes})


class Chunk(NamedTuple):
    """Some lines of a file."""

    text: str
    """Paragraphs with line ends between them."""
    lines: int
    """Lines or rows of the file that were read for it."""
    bad: int
    """Of those, lines that could not be read and were left out."""
    file: int
    """The place of the file in its source."""


def chunk_text(chunk: Chunk) -> str:
    """What a worker needs of a chunk."""
    return chunk.text


def read_chunks(file: TextFile, place: int = 0, *, field: str = "text", skip_bad: bool = False) -> Iterator[Chunk]:
    """The lines of a file in chunks of about a quarter of a megabyte; memory does not grow with the file."""
    with wrap_os_errors(file.name, "read"), file.path.open("rb") as opened:
        magic = opened.read(8)
    if magic.startswith(PARQUET):
        yield from _parquet(file, place, field)
    elif file.path.suffix.lower() == ".parquet" and magic:
        raise FormatError(file.name, "is no Parquet file; it does not begin with PAR1")
    else:
        reject_unsupported(file.name, magic)
        reader = _Lines(file, place, field, skip_bad)
        read = reader.json if file.holds_json else reader.plain
        for data in line_blocks(decompress(file.path, file.name, magic), None if file.holds_json else MAX_LINE_BYTES):
            yield read(data)


class _Lines:
    """Blocks of bytes into chunks; keeps the number of the line for messages."""

    def __init__(self, file: TextFile, place: int, field: str, skip_bad: bool) -> None:
        self.file, self.place, self.field, self.skip_bad = file, place, field, skip_bad
        self.ends = 0
        self.started = self.unfinished = False

    def plain(self, data: bytes) -> Chunk:
        """Lines of plain text."""
        try:
            text, bad = data.decode("utf-8"), 0
        except UnicodeDecodeError:
            rows = data.split(b"\n")
            found = [self._decoded(line, place, rows) for place, line in enumerate(rows)]
            text, bad = "\n".join(line for line in found if line is not None), found.count(None)
        return self._chunk(data, text, bad)

    def json(self, data: bytes) -> Chunk:
        """Lines of JSON objects; a text of several lines is several paragraphs."""
        lines = enumerate(data.removeprefix(b"\xef\xbb\xbf" if not self.started else b"").split(b"\n"))
        found = [self._field(line, place) for place, line in lines if line.strip()]
        return self._chunk(data, "\n".join(text for text in found if text is not None), found.count(None))

    def _chunk(self, data: bytes, text: str, bad: int) -> Chunk:
        if not self.started:
            text, self.started = text.removeprefix("\ufeff"), True
        ends = data.count(b"\n")
        self.ends += ends
        begun, self.unfinished = self.unfinished, not data.endswith(b"\n")  # a line that was cut counts once
        return Chunk(text, ends + self.unfinished - begun, bad, self.place)

    def _decoded(self, line: bytes, place: int, rows: list[bytes]) -> str | None:
        """A line, one of the rows of its block."""
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 (byte 0x{line[error.start]:02x})"
            if self.skip_bad or not _in_another_encoding(rows):
                return self._refuse(place, what)
            advice = f"{what}, nor are most lines that go beyond ASCII; the text is in another encoding: {ENCODING_ADVICE}"
            raise FormatError(self._where(place), advice) from error

    def _field(self, line: bytes, place: int) -> str | None:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError too
            return self._refuse(place, f"is not valid JSON ({error})")
        text = row.get(self.field) if isinstance(row, dict) else None
        if not isinstance(text, str):
            known = nearest(self.field, row) if isinstance(row, dict) else ""
            return self._refuse(place, f"has no text in a field {self.field!r}{known}")
        if b"\\u" in line and _SURROGATE.search(text):
            return self._refuse(place, "holds half of a surrogate pair, which is no character")
        return text

    def _refuse(self, place: int, what: str) -> str | None:
        """None, which counts as a bad line, or stop here."""
        if self.skip_bad:
            return None
        raise FormatError(self._where(place), f"{what}; mend it, or skip bad lines")

    def _where(self, place: int) -> str:
        return f"{self.file.name}:{self.ends + place + 1}"


def _in_another_encoding(lines: list[bytes]) -> bool:
    """Whether several of these lines are not UTF-8, and more than are UTF-8 beyond ASCII: skipping them would lose the text."""
    bad = good = 0
    for line in lines:
        try:
            good += not line.decode("utf-8").isascii()
        except UnicodeDecodeError:
            bad += 1
    return bad > max(good, 1)


def _parquet(file: TextFile, place: int, field: str) -> Iterator[Chunk]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError(f"{file.name} is a Parquet file; reading it needs pyarrow", "parquet") from error
    try:
        with wrap_os_errors(file.name, "read"), pyarrow.parquet.ParquetFile(file.path) as table:
            names = table.schema_arrow.names
            if field not in names:
                raise FormatError(file.name, f"has no column {field!r}{nearest(field, names)}")
            kind = table.schema_arrow.field(field).type
            if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
                raise FormatError(file.name, f"holds {kind} in the column {field!r}; expected text")
            for rows in table.iter_batches(batch_size=256, columns=[field]):
                texts = [text for text in rows.column(0).to_pylist() if text is not None]
                yield Chunk("\n".join(texts), len(rows), 0, place)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        raise FormatError(file.name, f"is a damaged Parquet file ({error})") from error
