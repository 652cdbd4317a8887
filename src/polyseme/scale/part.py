"""One part of a dataset as a Parquet file (extra `parquet`): a row per line, words beside vectors.

    file, line            where the text stands; lines are counted from 0
    words, offsets        the words, and the first and last-but-one character of each in its line
    vectors               one vector per word: list<fixed_size_list<float>[dim]>; or
    layer_0, layer_1 ...  the same for each of several layers; or
    vector                one vector per text: fixed_size_list<float>[dim]

Vectors look random and are not compressed; the rest is. A part says in its footer what it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import MissingExtraError
from polyseme.formats.vectors.parquet import valid_utf8
from polyseme.scale.folder import DatasetFolder
from polyseme.scale.manifest import PartInfo
from polyseme.scale.rows import Row

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtraError("datasets need pyarrow", "parquet") from error

_PLAIN = {"file": "zstd", "line": "zstd", "words.list.element": "zstd", "offsets.list.element.list.element": "zstd"}


@dataclass(frozen=True)
class Columns:
    """The columns of vectors."""

    names: tuple[str, ...]
    """`vector`, `vectors`, or `layer_0` and so on."""
    dim: int
    fp16: bool

    @property
    def per_text(self) -> bool:
        return self.names == ("vector",)

    def schema(self) -> Any:
        vector = pa.list_(pa.float16() if self.fp16 else pa.float32(), self.dim)
        return pa.schema(
            [
                pa.field("file", pa.string()),
                pa.field("line", pa.int64()),
                pa.field("words", pa.list_(pa.string())),
                pa.field("offsets", pa.list_(pa.list_(pa.int32(), 2))),
                *(pa.field(name, vector if self.per_text else pa.list_(vector)) for name in self.names),
            ]
        )


class PartWriter:
    """Writes rows to one file."""

    def __init__(self, path: Path, columns: Columns, sha256: str) -> None:
        self._columns, self._schema = columns, columns.schema()
        self._sha256, self._rows, self._words = sha256, 0, 0
        vectors = [f"{name}.list.element" + ("" if columns.per_text else ".list.element") for name in columns.names]
        self._file = pq.ParquetWriter(
            path,
            self._schema,
            compression={**_PLAIN, **dict.fromkeys(vectors, "none")},
            use_dictionary=["file", "words.list.element"],
            write_statistics=["file", "line"],
            store_schema=True,
        )

    def write(
        self, rows: Sequence[Row], words: Sequence[Sequence[str]], offsets: Sequence[Sequence[tuple[int, int]]], vectors: Any
    ) -> None:
        """Add rows. `vectors`: per text (rows, dim); else for each column the vectors of all words, (words, dim)."""
        counts = np.array([0, *map(len, words)], dtype=np.int64)
        ends = pa.array(np.cumsum(counts).astype(np.int32))
        spans = np.array([end for each in offsets for span in each for end in span], dtype=np.int32)
        flat = pa.array(valid_utf8([word for each in words for word in each]), pa.string())
        arrays = [
            pa.array([row.file for row in rows], pa.string()),
            pa.array([row.line for row in rows], pa.int64()),
            pa.ListArray.from_arrays(ends, flat),
            pa.ListArray.from_arrays(ends, pa.FixedSizeListArray.from_arrays(pa.array(spans), 2)),
        ]
        for each in vectors:
            fixed = self._fixed(each)
            arrays.append(fixed if self._columns.per_text else pa.ListArray.from_arrays(ends, fixed))
        self._file.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
        self._rows += len(rows)
        self._words += int(counts.sum())

    def close(self) -> PartInfo:
        """Complete the file."""
        about = {"polyseme_rows": str(self._rows), "polyseme_words": str(self._words), "polyseme_shard": self._sha256}
        self._file.add_key_value_metadata(about)
        self._file.close()
        return PartInfo(self._rows, self._words, self._sha256)

    def _fixed(self, vectors: NDArray[np.floating[Any]]) -> Any:
        number = np.float16 if self._columns.fp16 else np.float32
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(vectors, dtype=number).reshape(-1)
        return pa.FixedSizeListArray.from_arrays(pa.array(values), self._columns.dim)


@contextmanager
def one_behind(function: Callable[..., object]) -> Iterator[Callable[..., None]]:
    """Run calls of a function in a thread, in order: each waits for the one before, the end for the last.

    An error of a call is raised by the next one, or at the end.
    """
    last: Future[object] | None = None

    def call(*given: object) -> None:
        nonlocal last
        if last is not None:
            last.result()
        last = thread.submit(function, *given)

    with ThreadPoolExecutor(1) as thread:
        yield call
        if last is not None:
            last.result()


def read_info(folder: DatasetFolder, name: str) -> PartInfo | None:
    """Return what a part says about itself; None: it is none of ours, or damaged."""
    try:
        with folder.open_part(name) as file, pq.ParquetFile(file) as part:
            about = part.metadata.metadata or {}
            return PartInfo(int(about[b"polyseme_rows"]), int(about[b"polyseme_words"]), about[b"polyseme_shard"].decode())
    except (KeyError, ValueError, OSError, pa.ArrowException):
        return None
