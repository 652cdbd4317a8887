"""Parquet files as input (extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from polyseme.base.errors import FormatError, MissingExtraError


@contextmanager
def parquet_file(file: Any, name: str) -> Iterator[Any]:
    """Open a Parquet file; one that is damaged is an error of its format."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError(f"{name} is a Parquet file; reading it needs pyarrow", "parquet") from error
    file.seek(0)
    try:
        with ParquetFile(file) as table:
            yield table
    except pyarrow.ArrowInvalid as error:
        raise FormatError(name, f"is not a Parquet file, or damaged ({error})") from error
