"""One file of text, read in chunks of lines: a line is a paragraph.

Parquet and compression are recognised by the first bytes, never by the name. JSON lines have no such bytes and are recognised
by `.jsonl` or `.ndjson` in the name, or because a field is given. Lines end only at "\\n", because the other line ends of
Unicode occur inside paragraphs of real corpora. Blocks of a quarter of a megabyte are decoded at once, and line by line only
if that fails: several times faster than iterating over a text file, and errors still name the line. Other encodings than
UTF-8 are recognised by content (`encodings`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from polyseme.base.errors import FormatError, MissingExtraError, nearest
from polyseme.base.files import wrap_os_errors
from polyseme.text.files.data_tables import read_arrow
from polyseme.text.files.decompression import decompress, line_blocks, reject_unsupported
from polyseme.text.files.encodings import (
    Narrow,
    as_utf8,
    decode_narrow,
    encoding_advice,
    is_utf8,
    narrow_encoding,
    report_encoding,
)

PARQUET = b"PAR1"
_SURROGATE = re.compile("[\ud800-\udfff]")
SKIP_ADVICE = ", or skip bad lines"
"""The end of a message; the command line names the option there, where the command has one."""
_IS_ARRAY = "begins a JSON array; expected JSON lines, one object {...} on each line: jq -c '.[]' FILE writes them"
MAX_LINE_BYTES = 1 << 23
"""Longer lines of plain text are cut, so that a file without line ends does not fill the memory."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file and its name for messages."""

    path: Path
    title: str | None = None
    json: bool = False
    """Whether it holds JSON lines whatever its name."""

    @property
    def name(self) -> str:
        """The name that the user knows."""
        return self.title or str(self.path)

    @property
    def holds_json(self) -> bool:
        """Whether it holds JSON lines, compressed or not."""
        return self.json or bool({".jsonl", ".ndjson"} & {suffix.lower() for suffix in self.path.suffixes})


class Chunk(NamedTuple):
    """Some lines of a file."""

    text: str
    """Paragraphs separated by line ends."""
    lines: int
    """Lines or rows of the file."""
    bad: int
    """Lines among these that could not be read and were skipped."""
    file: int
    """The number of the file in its source."""


ChunkMap = Callable[[Callable[[str], Any], Any], Iterator[tuple[Chunk, Any]]]
"""Applies a function to the texts of all chunks of a source, in order; the chunks that it gives back may lack their text."""


class TextEngine(Protocol):
    """What reads and splits a text, and does other work on it, instead of processes of this machine."""

    def __call__(self, function: Callable[[str], Any], source: Any, /) -> Iterator[tuple[Chunk, Any]]:
        """Do as a `ChunkMap` does."""

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of a function for each task, in order."""


def chunk_text(chunk: Chunk) -> str:
    """Return what a worker needs of a chunk."""
    return chunk.text


def read_chunks(
    file: TextFile,
    number: int = 0,
    *,
    field: str = "text",
    skip_bad: bool = False,
    blocks: Iterator[bytes] | None = None,
    begun: bool = False,
) -> Iterator[Chunk]:
    """Yield the lines of a file in chunks of about a quarter of a megabyte; memory does not grow with the file.

    `blocks`: whole lines of the file, to read only these; `begun`: they are not its first ones.
    """
    with wrap_os_errors(file.name, "read"), file.path.open("rb") as opened:
        magic = opened.read(8)
    if file.path.suffix.lower() == ".arrow":
        for rows in read_arrow(file.path, [field]):
            texts = [row[field] for row in rows if isinstance(row[field], str)]
            yield Chunk("\n".join(texts), len(rows), 0, number)
    elif magic.startswith(PARQUET):
        yield from _parquet(file, number, field)
    elif file.path.suffix.lower() == ".parquet" and magic:
        raise FormatError(file.name, "is not a Parquet file: it does not begin with PAR1")
    else:
        reject_unsupported(file.name, magic)
        reader = _Lines(file, number, field, skip_bad)
        reader.started = begun
        read = reader.json if file.holds_json else reader.plain
        blocks = as_utf8(decompress(file.path, file.name, magic), file.name) if blocks is None else blocks
        for data in line_blocks(blocks, None if file.holds_json else MAX_LINE_BYTES):
            yield read(data)


class _Lines:
    """Turns blocks of bytes into chunks and counts lines for messages."""

    def __init__(self, file: TextFile, number: int, field: str, skip_bad: bool) -> None:
        self.file, self.number, self.field, self.skip_bad = file, number, field, skip_bad
        self.ends = 0
        self.started = self.unfinished = False
        self.encoding: Narrow | None = None
        """What the text turned out to be; None: UTF-8."""

    def plain(self, data: bytes) -> Chunk:
        """Read lines of plain text."""
        try:
            text, bad = data.decode("utf-8"), 0
        except UnicodeDecodeError:
            rows = data.split(b"\n")
            self._recognise(rows)
            found = [self._decoded(line, number, rows) for number, line in enumerate(rows)]
            text, bad = "\n".join(line for line in found if line is not None), found.count(None)
        return self._chunk(data, text, bad)

    def _recognise(self, rows: list[bytes]) -> None:
        """Decide for another encoding if several lines are not UTF-8; a single one is a bad line."""
        if self.encoding is None:
            self.encoding = narrow_encoding(rows, good=1)
            if self.encoding is not None:
                report_encoding(self.file.name, self.encoding)

    def json(self, data: bytes) -> Chunk:
        """Read lines of JSON objects; a text of several lines is several paragraphs."""
        rows = data.removeprefix(b"\xef\xbb\xbf" if not self.started else b"").split(b"\n")
        if not is_utf8(data):
            self._recognise(rows)
        lines = enumerate(rows)
        found = [self._field(line, number) for number, line in lines if line.strip()]
        return self._chunk(data, "\n".join(text for text in found if text is not None), found.count(None))

    def _chunk(self, data: bytes, text: str, bad: int) -> Chunk:
        if not self.started:
            text, self.started = text.removeprefix("\ufeff"), True
        ends = data.count(b"\n")
        self.ends += ends
        begun, self.unfinished = self.unfinished, not data.endswith(b"\n")  # a cut line counts once
        return Chunk(text, ends + self.unfinished - begun, bad, self.number)

    def _decoded(self, line: bytes, number: int, rows: list[bytes]) -> str | None:
        """Decode a line, one of the rows of its block."""
        try:
            return line.decode("utf-8") if self.encoding is None else decode_narrow(line, self.encoding)
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 (byte 0x{line[error.start]:02x})"
            if self.skip_bad or not _in_another_encoding(rows):
                return self._refuse(number, what)
            advice = f"{what}, nor are most lines beyond ASCII; the text has another encoding; {encoding_advice(rows)}"
            raise FormatError(self._where(number), advice) from error

    def _field(self, line: bytes, number: int) -> str | None:
        if line.rstrip().endswith(b"},"):  # cut out of a JSON array
            line = line.rstrip().removesuffix(b",")
        try:
            row = json.loads(line if self.encoding is None else decode_narrow(line, self.encoding) or "")
        except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError too
            if self._is_first(number) and line.lstrip().startswith(b"["):
                raise FormatError(self._where(number), _IS_ARRAY) from None
            return self._refuse(number, f"is not valid JSON ({error})")
        if isinstance(row, list) and self._is_first(number):
            raise FormatError(self._where(number), _IS_ARRAY)
        text = row.get(self.field) if isinstance(row, dict) else None
        if not isinstance(text, str):
            known = nearest(self.field, row) if isinstance(row, dict) else ""
            return self._refuse(number, f"has no text in the field {self.field!r}{known}")
        if b"\\u" in line and _SURROGATE.search(text):
            return self._refuse(number, "has half of a surrogate pair, which is not a character")
        return text

    def _is_first(self, number: int) -> bool:
        return number == self.ends == 0

    def _refuse(self, number: int, what: str) -> str | None:
        """Return None, which counts as a bad line, or raise an error."""
        if self.skip_bad:
            return None
        raise FormatError(self._where(number), f"{what}; fix the line{SKIP_ADVICE}")

    def _where(self, number: int) -> str:
        return f"{self.file.name}:{self.ends + number + 1}"


def _in_another_encoding(lines: list[bytes]) -> bool:
    """Whether several lines are not UTF-8, and more than are non-ASCII UTF-8: skipping them would lose the text."""
    bad = good = 0
    for line in lines:
        try:
            good += not line.decode("utf-8").isascii()
        except UnicodeDecodeError:
            bad += 1
    return bad > max(good, 1)


def _parquet(file: TextFile, number: int, field: str) -> Iterator[Chunk]:
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
                raise FormatError(file.name, f"has {kind} in the column {field!r}; expected text")
            for rows in table.iter_batches(batch_size=256, columns=[field]):
                texts = [text for text in rows.column(0).to_pylist() if text is not None]
                yield Chunk("\n".join(texts), len(rows), 0, number)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        raise FormatError(file.name, f"is a damaged Parquet file ({error})") from error
