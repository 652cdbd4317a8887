"""The files of an index: NumPy arrays and JSON, nothing that can carry code.

index.json     what the other files must be; written last, so that without it nothing is trusted
vectors.npy    (occurrences, dim) float16: a vector of length 1 for each word of each sentence, sentence after sentence
words.npy      (occurrences,) uint32: the rows of these words in types.json
offsets.npy    (sentences + 1,) int64: where each sentence begins in the two above
types.json     the distinct words, in the order in which they first come
own.npy        (types, dim) float16: the word's own vector (layer 0), of length 1
counts.npy     (types,) int64: how often the text has the word
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

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import read_json, wrap_os_errors, write_text

FORMAT = 1
MANIFEST, TYPES = "index.json", "types.json"
ARRAYS = {"vectors": "<f2", "words": "<u4", "offsets": "<i8", "own": "<f2", "counts": "<i8"}


@dataclass(frozen=True, kw_only=True)
class IndexManifest(Config):
    """What an index must be."""

    polyseme_index: int = FORMAT
    """The version of the format."""
    model: str
    """Fingerprint of the model."""
    text: str
    """Fingerprint of the sentences."""
    first_layer: int
    last_layer: int
    """The layers whose mean the vectors are; for one layer, both are its number."""
    occurrences: int
    sentences: int
    types: int
    dim: int

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each array."""
        return {
            "vectors": (self.occurrences, self.dim),
            "words": (self.occurrences,),
            "offsets": (self.sentences + 1,),
            "own": (self.types, self.dim),
            "counts": (self.types,),
        }


class AppendableArray:
    """A .npy file to which rows are added; how many they are is written into its head at the end."""

    def __init__(self, path: Path, dim: int) -> None:
        self.rows, self._dim = 0, dim
        self._file = path.open("wb")
        self._head()

    def add(self, rows: NDArray[np.float16]) -> None:
        """Some more rows, (rows, dim)."""
        self._file.write(np.ascontiguousarray(rows, dtype="<f2").data)
        self.rows += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        """All rows are on the disk after this."""
        with self._file:
            self._file.seek(0)
            self._head()  # as long as it was: NumPy leaves room for the first axis to grow
            self._file.flush()
            os.fsync(self._file.fileno())

    def _head(self) -> None:
        head = {"descr": "<f2", "fortran_order": False, "shape": (self.rows, self._dim)}
        npy.write_array_header_1_0(self._file, head)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """A small array, on the disk when this returns."""
    with path.open("wb") as file:
        npy.write_array(file, array, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def write_types(folder: Path, types: list[str]) -> None:
    """The distinct words; any string is one, line ends and lone surrogates included."""
    write_text(folder / TYPES, json.dumps({"types": types}, indent=0) + "\n")


def write_manifest(folder: Path, manifest: IndexManifest) -> None:
    """Make the folder trusted; all other files are on the disk before."""
    write_text(folder / MANIFEST, json.dumps(manifest.to_dict(), indent=2) + "\n")


def read_manifest(folder: Path) -> IndexManifest:
    """What the index in a folder must be; a `FormatError` where there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        raise FormatError(folder, f"holds no whole index ({MANIFEST} is missing); build it again")
    try:
        manifest = IndexManifest.from_dict(read_json(path), MANIFEST)
    except ConfigError as error:
        raise FormatError(path, str(error)) from error
    if manifest.polyseme_index != FORMAT:
        raise FormatError(path, f"is of format {manifest.polyseme_index}; this program reads {FORMAT}")
    return manifest


def read_arrays(folder: Path, manifest: IndexManifest) -> dict[str, NDArray[Any]]:
    """The arrays by their names, memory-mapped; one that is not what the manifest says is a `FormatError`."""
    arrays = {}
    for name, shape in manifest.shapes().items():
        path = folder / f"{name}.npy"
        if not path.is_file():
            raise FormatError(path, "is missing from the index; build it again")
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
    """The distinct words."""
    types = read_json(folder / TYPES).get("types")
    if not isinstance(types, list) or len(types) != manifest.types or not all(isinstance(word, str) for word in types):
        raise FormatError(folder / TYPES, f"does not hold the {manifest.types:,} words of the index; build it again")
    return types
