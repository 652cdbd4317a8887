"""Tables of other libraries as rows: Hugging Face datasets, data frames and Arrow in memory, `save_to_disk` folders, Parquet.

They are recognised by what they can do, so none of these libraries is imported. The folder of a saved dataset has Arrow files,
`state.json`, which names them, and `dataset_info.json`, which says what the columns are; reading it needs pyarrow. Numbers of a
`ClassLabel` become its names, and the number of no label (-1) no value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, MissingExtraError, UsageError, nearest
from polyseme.base.files import read_json, starts_with, wrap_os_errors

_PARQUET = b"PAR1"
STATE, INFO, SPLITS = "state.json", "dataset_info.json", "dataset_dict.json"
Row = dict[str, Any]


def is_dataset_folder(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk` of Hugging Face datasets: one dataset, or one for each split."""
    return ((path / STATE).is_file() and (path / INFO).is_file()) or (path / SPLITS).is_file()


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its content."""
    return path.is_file() and starts_with(path, _PARQUET)


def is_table(data: object) -> bool:
    """Whether a value is a table with named columns: a dataset, a data frame, an Arrow table."""
    return _read_rows(data) is not None or _splits(data) is not None


def table_rows(data: Any) -> Iterator[Row]:
    """Yield the rows of a table in memory, of the folder of a saved one, or of a Parquet file."""
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        return _parquet_rows(path) if is_parquet(path) else _folder_rows(path)
    if (splits := _splits(data)) is not None:
        raise UsageError(f"the data has splits ({', '.join(splits)}): give one of them, such as data[{next(iter(splits))!r}]")
    rows = _read_rows(data)
    if rows is None:
        raise UsageError(f"expected a table with named columns, got {type(data).__name__}")
    return _decoded(rows(), _features(getattr(data, "features", None)))


def data_files(folder: Path) -> list[Path]:
    """Return the Arrow files of a saved dataset."""
    if (folder / SPLITS).is_file():
        names = read_json(folder / SPLITS).get("splits") or []
        first = f"{folder}/{names[0]}" if names else "one of its folders"
        raise UsageError(f"{folder} has splits ({', '.join(map(str, names))}): give one of them, such as {first}")
    entries = read_json(folder / STATE).get("_data_files")
    names = [entry.get("filename") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
        raise FormatError(folder / STATE, "names no files of this folder; save the dataset again with save_to_disk")
    return [folder / str(name) for name in names]


def read_arrow(path: Path, columns: list[str] | None = None) -> Iterator[list[Row]]:
    """Yield the rows of an Arrow file, some at a time."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtraError(f"{path} is an Arrow file; reading it needs pyarrow", "parquet") from error
    try:
        with wrap_os_errors(path, "read"), pyarrow.memory_map(str(path)) as file:
            for batch in pyarrow.ipc.open_stream(file):
                if columns is not None:
                    for name in columns:
                        if name not in batch.schema.names:
                            raise FormatError(path, f"has no column {name!r}{nearest(name, batch.schema.names)}")
                    batch = batch.select(columns)
                yield from (batch.slice(begin, 256).to_pylist() for begin in range(0, len(batch), 256))
    except pyarrow.ArrowInvalid as error:
        raise FormatError(path, f"is a damaged Arrow file ({error})") from error


def _folder_rows(folder: Path) -> Iterator[Row]:
    files = data_files(folder)
    features = _features(read_json(folder / INFO).get("features"))
    return _decoded((row for file in files for rows in read_arrow(file) for row in rows), features)


def _parquet_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a Parquet file; those of Hugging Face datasets say what their columns are."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError(f"{path} is a Parquet file; reading it needs pyarrow", "parquet") from error
    try:
        with wrap_os_errors(path, "read"), parquet.ParquetFile(path) as file:
            saved = (file.schema_arrow.metadata or {}).get(b"huggingface", b"{}")
            features = _features(json.loads(saved).get("info", {}).get("features"))
            for batch in file.iter_batches(256):
                yield from _decoded(batch.to_pylist(), features)
    except pyarrow.ArrowInvalid as error:
        raise FormatError(path, f"is a damaged Parquet file ({error})") from error


def _read_rows(data: Any) -> Callable[[], Iterable[Row]] | None:
    """What reads the rows of a table in memory; None: it is none."""
    if hasattr(data, "features") and hasattr(data, "column_names") and hasattr(data, "with_format"):  # datasets
        return lambda: data.with_format(None)
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):  # Polars
        return lambda: data.iter_rows(named=True)
    if hasattr(data, "to_dict") and hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        return lambda: data.to_dict("records")
    if hasattr(data, "to_pylist") and hasattr(data, "column_names"):  # Arrow
        return lambda: data.to_pylist()
    return None


def _splits(data: Any) -> list[str] | None:
    """The names of splits, where the data is a `DatasetDict`."""
    if isinstance(data, Mapping) and data and all(hasattr(each, "column_names") for each in data.values()):
        return [str(name) for name in data]
    return None


def _features(features: Any) -> dict[str, list[str]]:
    """The names of labels by column; those of a list of labels too."""
    found = {}
    for column, feature in (features or {}).items():
        inner = feature
        for _ in range(2):  # a list: {"_type": "List", "feature": {...}}, or an older list of one
            nested = inner.get("feature") if isinstance(inner, Mapping) else getattr(inner, "feature", None)
            inner = nested if nested is not None else inner[0] if isinstance(inner, list) and inner else inner
        names = inner.get("names") if isinstance(inner, Mapping) else getattr(inner, "names", None)
        if names:
            found[str(column)] = [str(name) for name in names]
    return found


def _decoded(rows: Iterable[Row], labels: Mapping[str, list[str]]) -> Iterator[Row]:
    def name(value: Any, names: list[str]) -> Any:
        if isinstance(value, list):
            return [name(each, names) for each in value]
        return (names[value] if 0 <= value < len(names) else None) if isinstance(value, int) else value

    for row in rows:
        yield {column: name(value, labels[column]) if column in labels else value for column, value in row.items()}


def to_json_line(row: Row) -> str:
    """Return a row as a line of JSON; a missing number of pandas is no value."""
    return json.dumps({name: None if value != value else value for name, value in row.items()}, ensure_ascii=False, default=str)
