"""Vectors as Parquet (extra `parquet`): one row per line, with the words beside the vectors.

import pyarrow.parquet as pq
row = pq.read_table("vectors.parquet").slice(0, 1).to_pylist()[0]
vectors = np.reshape(row["vectors"], (row["layers"], len(row["words"]), row["dim"]))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base.errors import MissingExtraError
from polyseme.encoders.embedding_stream import EmbeddedLine
from polyseme.formats.vectors.sharded import ShardedWriter
from polyseme.formats.vectors.writer import DamagedPart, FileInfo

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("Parquet files need pyarrow", "parquet") from error


class ParquetWriter(ShardedWriter):
    """One row per line; one row group per batch of lines."""

    suffix = ".parquet"

    def create(self, path: Path) -> Any:
        # vectors look random and have no repeated numbers, so neither compression nor dictionaries pay
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        return pq.ParquetWriter(path, _schema(self.info), **options)

    def add(self, file: Any, rows: Sequence[EmbeddedLine]) -> None:
        file.write_table(_table(rows, _schema(self.info)))

    def merge(self, shard: Path, file: Any) -> None:
        with pq.ParquetFile(shard) as source:
            for group in range(source.num_row_groups):
                file.write_table(source.read_row_group(group))

    def check(self, shard: Path) -> None:
        try:
            pq.ParquetFile(shard).close()
        except (pa.ArrowException, OSError) as error:
            raise DamagedPart(f"{shard.name} cannot be opened ({error})") from error


def _schema(info: FileInfo) -> Any:
    number = pa.float16() if info.fp16 else pa.float32()
    columns = [
        ("line", pa.int64()),
        ("words", pa.list_(pa.string())),
        ("layers", pa.int32()),
        ("dim", pa.int32()),
        ("vectors", pa.large_list(number)),
    ]
    return pa.schema(columns, metadata={name: value.encode("utf-8", "replace") for name, value in info.metadata.items()})


def _table(rows: Sequence[EmbeddedLine], schema: Any) -> Any:
    sizes = np.array([0, *(row.vectors.size for row in rows)], dtype=np.int64)
    values = np.concatenate([row.vectors.reshape(-1) for row in rows])
    number = schema.field("vectors").type.value_type
    columns = [
        pa.array([row.line for row in rows], pa.int64()),
        pa.array([valid_utf8(row.words) for row in rows], pa.list_(pa.string())),
        pa.array([row.stack.shape[0] for row in rows], pa.int32()),
        pa.array([row.vectors.shape[-1] for row in rows], pa.int32()),
        pa.LargeListArray.from_arrays(pa.array(np.cumsum(sizes)), pa.array(values, number)),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def valid_utf8(words: Sequence[str]) -> Sequence[str]:
    """Replace lone surrogates, which have no UTF-8, by question marks.

    >>> valid_utf8(["naïve", "a\\ud800"])
    ['naïve', 'a?']
    """
    try:
        "".join(words).encode("utf-8")
    except UnicodeEncodeError:
        return [word.encode("utf-8", "replace").decode("utf-8") for word in words]
    return words
