"""The files of an index: NumPy arrays and JSON, no pickles.

index.json     the manifest; written last, so that an index without it is incomplete
vectors.npy    (occurrences, dim) float16: a vector of length 1 for each word of each sentence, sentence after sentence
norms.npy      (occurrences,) float32: the lengths of these vectors before; older indexes lack it
words.npy      (occurrences,) uint32: the rows of these words in types.json
offsets.npy    (sentences + 1,) int64: where each sentence begins in the three above
types.json     the distinct words, in order of first occurrence
own.npy        (types, dim) float16: the static vector of each word (layer 0), of length 1
counts.npy     (types,) int64: occurrences in the text
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from polyseme.base.config import Config, config_errors_of
from polyseme.base.errors import FormatError
from polyseme.base.files import read_json, wrap_os_errors, write_text

FORMAT = 1
MANIFEST, TYPES = "index.json", "types.json"
OPTIONAL = ("norms",)
ARRAYS = {"vectors": "<f2", "norms": "<f4", "words": "<u4", "offsets": "<i8", "own": "<f2", "counts": "<i8"}


@dataclass(frozen=True, kw_only=True)
class IndexManifest(Config):
    """What an index contains."""

    polyseme_index: int = FORMAT
    model: str
    text: str
    first_layer: int
    last_layer: int
    """The layers whose mean the vectors are; for one layer, both are its number."""
    occurrences: int
    sentences: int
    types: int
    dim: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "vectors": (self.occurrences, self.dim),
            "norms": (self.occurrences,),
            "words": (self.occurrences,),
            "offsets": (self.sentences + 1,),
            "own": (self.types, self.dim),
            "counts": (self.types,),
        }


class AppendableArray:
    """A .npy file to which rows are appended; the header gets their number at the end."""

    def __init__(self, path: Path, dim: int) -> None:
        self.rows, self._dim = 0, dim
        self._file = path.open("wb")
        self._head()

    def add(self, rows: NDArray[np.float16]) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype="<f2").data)
        self.rows += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """Write all rows to the disk."""
        with self._file:
            self._file.seek(0)
            self._head()  # as long as before: NumPy leaves room for the first axis to grow
            self._file.flush()
            os.fsync(self._file.fileno())

    def _head(self) -> None:
        head = {"descr": "<f2", "fortran_order": False, "shape": (self.rows, self._dim)}
        npy.write_array_header_1_0(self._file, head)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write a small array durably."""
    with path.open("wb") as file:
        npy.write_array(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def write_types(folder: Path, types: list[str]) -> None:
    """Write the distinct words; any string is allowed, even line ends and lone surrogates."""
    write_text(folder / TYPES, json.dumps({"types": types}, indent=0) + "\n")


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Write the manifest, after all other files are on the disk."""
    write_text(folder / MANIFEST, json.dumps(manifest.to_dict(), indent=2) + "\n")


def read_manifest(folder: Path) -> IndexManifest:
    """Read the manifest of a folder; raise `FormatError` if it has no index."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FormatError(folder, f"has no complete index ({MANIFEST} is missing): build it again")
    with config_errors_of(path):
        manifest = IndexManifest.from_dict(read_json(path), MANIFEST)
    if manifest.polyseme_index != FORMAT:
        raise FormatError(path, f"has format {manifest.polyseme_index}; this version reads format {FORMAT}: build it again")
    return manifest


def read_arrays(folder: Path, manifest: IndexManifest) -> dict[str, NDArray[Any]]:
    """Open the arrays, memory-mapped; raise `FormatError` for one that does not match the manifest."""
    arrays = {}
    for name, shape in manifest.shapes().items():
        path = folder / f"{name}.npy"
        if not path.is_file() and name in OPTIONAL:
            continue
        if not path.is_file():
            raise FormatError(path, "is missing from the index: build it again")
        try:
            with wrap_os_errors(path, "read"):
                array = np.load(path, mmap_mode="r" if min(shape) else None, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise FormatError(path, f"is a damaged array ({error}); build the index again") from error
        if array.shape != shape or array.dtype != np.dtype(ARRAYS[name]):
            raise FormatError(path, f"holds {array.dtype} {array.shape}; expected {np.dtype(ARRAYS[name])} {shape}")
        arrays[name] = array
    return arrays


def read_types(folder: Path, manifest: IndexManifest) -> list[str]:
    types = read_json(folder / TYPES).get("types")
    if not isinstance(types, list) or len(types) != manifest.types or not all(isinstance(word, str) for word in types):
        raise FormatError(folder / TYPES, f"does not have the {manifest.types:,} words of the index: build it again")
    return types
