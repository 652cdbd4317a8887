"""Files of vectors read by the packages that everybody has, and nothing of ours."""

import gzip
import json
from pathlib import Path

import h5py
import numpy as np

KINDS = [".hdf5", ".h5", ".npz", ".parquet", ".jsonl", ".jsonl.gz"]


def read_vectors(path: Path) -> dict[int, np.ndarray]:
    """Line -> (layers, words, dim)."""
    if path.suffix in (".hdf5", ".h5"):
        with h5py.File(path) as file:
            return {int(name): file[name][()] for name in file}
    if path.suffix == ".npz":
        with np.load(path) as file:
            return {int(name): file[name] for name in file}
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        number = np.float16 if table.schema.field("vectors").type.value_type == "halffloat" else np.float32
        rows = table.to_pylist()
        return {
            row["line"]: np.asarray(row["vectors"], number).reshape(row["layers"], len(row["words"]), row["dim"])
            for row in rows
        }
    rows = [json.loads(line) for line in _text(path).splitlines()]
    dim = max((len(word) for row in rows for word in row["vectors"][0]), default=16)  # an empty line does not say it
    return {
        row["line"]: np.asarray(row["vectors"], np.float32).reshape(len(row["vectors"]), len(row["words"]), dim) for row in rows
    }


def read_words(path: Path) -> list[list[str]]:
    """The words, of the kinds that hold them."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path)["words"].to_pylist()
    return [json.loads(line)["words"] for line in _text(path).splitlines()]


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
