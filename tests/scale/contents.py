"""Datasets compared byte by byte, and read with nothing but pyarrow."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a dataset."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of all parts, in the order of their names."""
    return [row for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
