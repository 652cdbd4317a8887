"""Vectors as JSON lines, plain or gzip.

Numbers have as many digits as a float needs to be read back exactly (9 for 32 bits, 5 for 16), which halves the file
compared to the digits of a double. A gzip file has one gzip member per commit; all tools read them as one file.
"""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polyseme.encoders.embedding_stream import EmbeddedLine
from polyseme.formats.vectors.append_file import AppendWriter
from polyseme.formats.vectors.writer import FileInfo, ResumePoint


class JsonlWriter(AppendWriter):
    """One JSON object per line."""

    name = "data.jsonl"

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        self.file.writelines(map(json_line, rows))


class GzipJsonlWriter(AppendWriter):
    """The same, compressed."""

    name = "data.jsonl"

    def __init__(self, folder: Path, info: FileInfo, resume: ResumePoint | None) -> None:
        super().__init__(folder, info, resume)
        self._member: gzip.GzipFile | None = None
        if resume is None:
            self.file.write(gzip.compress(b"", mtime=0))  # a file without lines is a gzip file too

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        if self._member is None:
            self._member = gzip.GzipFile(filename="", mode="wb", fileobj=self.file, mtime=0, compresslevel=3)
        self._member.writelines(map(json_line, rows))

    def commit(self) -> ResumePoint:
        self._end_member()
        return super().commit()

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._end_member()
        super().close()

    def _end_member(self) -> None:
        member, self._member = self._member, None
        if member is not None:
            member.close()


def json_line(row: EmbeddedLine) -> bytes:
    """Return one line as JSON, with its line end."""
    head = json.dumps({"line": row.line, "words": row.words}, ensure_ascii=False)
    try:
        start = head.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates have no UTF-8, but JSON has escapes for them
        start = json.dumps({"line": row.line, "words": row.words}).encode("ascii")
    return start[:-1] + b', "vectors": ' + _numbers(row.vectors).encode("ascii") + b"}\n"


def _numbers(vectors: np.ndarray) -> str:
    if not np.isfinite(vectors).all():
        return json.dumps(vectors.tolist())  # NaN and Infinity, as Python writes and reads them
    *layers, words, dim = vectors.shape
    digits = "%.9g" if vectors.dtype == np.float32 else "%.5g"
    vector = "[" + ", ".join([digits] * dim) + "]"
    layer = "[" + ", ".join([vector] * words) + "]"
    form = "[" + ", ".join([layer] * layers[0]) + "]" if layers else layer
    return form % tuple(vectors.ravel().tolist())
