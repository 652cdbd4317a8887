"""Vectors as Parquet (extra `parquet`): one row a line, with the words beside the vectors.

    import pyarrow.parquet as pq
    row = pq.read_table("vectors.parquet").slice(0, 1).to_pylist()[0]
    vectors = np.reshape(row["vectors"], (row["layers"], len(row["words"]), row["dim"]))

A Parquet file cannot be added to, so each commit closes a file of its own, and at the end their row groups are copied,
one at a time, into the whole. For that moment the disk holds the vectors twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base.errors import MissingExtraError
from polyseme.formats.vectors import About, Damaged, Mark, Row

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("Parquet files need pyarrow", "parquet") from error


class ParquetWriter:
    """One row a line; a row group for each batch of lines."""

    def __init__(self, folder: Path, about: About, mark: Mark | None) -> None:
        self._folder = folder
        self._schema = _schema(about)
        self._parts = mark["parts"] if mark else 0
        self._open: Any = None
        if not all(self._part(number).exists() for number in range(self._parts)):
            raise Damaged("a part is gone")

    def write(self, rows: Sequence[Row]) -> None:
        if self._open is None:
            self._open = _writer(self._part(self._parts), self._schema)
        self._open.write_table(_table(rows, self._schema))

    def commit(self) -> Mark:
        if self._open is not None:
            self._open.close()
            self._open = None
            _sync(self._part(self._parts))
            self._parts += 1
        return {"parts": self._parts}

    def finish(self) -> Path:
        whole = self._folder / "data.parquet"
        writer = _writer(whole, self._schema)
        try:
            for table in self._row_groups():
                writer.write_table(table)
        finally:
            writer.close()
        _sync(whole)
        return whole

    def close(self) -> None:
        if self._open is not None:
            with contextlib.suppress(OSError):
                self._open.close()
            self._open = None

    def _row_groups(self) -> Iterator[Any]:
        for number in range(self._parts):
            with pq.ParquetFile(self._part(number)) as part:
                for group in range(part.num_row_groups):
                    yield part.read_row_group(group)

    def _part(self, number: int) -> Path:
        return self._folder / f"part-{number:06}.parquet"


def _schema(about: About) -> Any:
    number = pa.float16() if about.half else pa.float32()
    columns = [
        ("line", pa.int64()),
        ("words", pa.list_(pa.string())),
        ("layers", pa.int32()),
        ("dim", pa.int32()),
        ("vectors", pa.large_list(number)),
    ]
    return pa.schema(columns, metadata={name: value.encode("utf-8", "replace") for name, value in about.facts.items()})


def _writer(path: Path, schema: Any) -> Any:
    # Vectors are noise to a compressor and have no two equal numbers, so neither compression nor dictionaries pay.
    return pq.ParquetWriter(path, schema, compression="none", use_dictionary=False, write_statistics=False)


def _table(rows: Sequence[Row], schema: Any) -> Any:
    sizes = np.array([0, *(row.vectors.size for row in rows)], dtype=np.int64)
    values = np.concatenate([row.vectors.reshape(-1) for row in rows])
    number = schema.field("vectors").type.value_type
    columns = [
        pa.array([row.line for row in rows], pa.int64()),
        pa.array([list(_valid(row.words)) for row in rows], pa.list_(pa.string())),
        pa.array([row.vectors.shape[0] for row in rows], pa.int32()),
        pa.array([row.vectors.shape[2] for row in rows], pa.int32()),
        pa.LargeListArray.from_arrays(pa.array(np.cumsum(sizes)), pa.array(values, number)),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _valid(words: Iterable[str]) -> Iterator[str]:
    """Words as Parquet can hold them: a lone surrogate has no UTF-8 and becomes a question mark."""
    return (word.encode("utf-8", "replace").decode("utf-8") for word in words)


def _sync(path: Path) -> None:
    with path.open("r+b") as file:
        os.fsync(file.fileno())
