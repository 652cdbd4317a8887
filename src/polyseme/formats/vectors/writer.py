"""Files of vectors: what every kind shares, and which kind a suffix names.

    .hdf5 .h5     as bilm-tf wrote it: one dataset a line, named by the line's number from 0, (layers, words, dim)
    .npz          the same as NumPy arrays: np.load(file)["0"]
    .parquet      one row a line: line, words, layers, dim, vectors (flat, to be reshaped to (layers, words, dim))
    .jsonl        one object a line: {"line": 0, "words": [...], "vectors": [layers][words][dim]}; .jsonl.gz likewise

A writer works inside a folder (`OUT.part`) and can be taken up again after it was killed at any moment: `commit` makes
all that was written so far safe and gives a *mark*; a writer made with that mark goes on from there, whatever came
after it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from polyseme.base.errors import UsageError

ResumePoint = dict[str, int]
BetweenSteps = Callable[[], None]

_WRITERS = {
    ".hdf5": "polyseme.formats.vectors.hdf5:Hdf5Writer",
    ".h5": "polyseme.formats.vectors.hdf5:Hdf5Writer",
    ".npz": "polyseme.formats.vectors.npz:NpzWriter",
    ".parquet": "polyseme.formats.vectors.parquet:ParquetWriter",
    ".jsonl": "polyseme.formats.vectors.jsonl:JsonlWriter",
    ".jsonl.gz": "polyseme.formats.vectors.jsonl:GzipJsonlWriter",
}


@dataclass(frozen=True)
class EmbeddedLine:
    """One line of the input and its vectors."""

    line: int
    """Its number, from 0."""
    words: list[str]
    vectors: np.ndarray
    """(layers, words, dim); an empty line has (layers, 0, dim)."""


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """What a whole file is about."""

    half: bool = False
    """16-bit floats instead of 32-bit ones."""
    facts: dict[str, str] = field(default_factory=dict)
    """Where the vectors come from, stored where the format has a place for it."""


class DamagedPart(Exception):
    """What a mark speaks of is not there any more, so the work begins anew."""


def nothing() -> None:
    """What is done between two steps where nobody asks for more."""


class VectorWriter(Protocol):
    """A kind of file being written, inside a folder of its own."""

    def __init__(self, folder: Path, about: FileInfo, mark: ResumePoint | None) -> None:
        """Begin, or go on from a mark; `DamagedPart` where that cannot be done."""

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        """Add lines, in order."""

    def commit(self) -> ResumePoint:
        """Make all that was written so far safe on the disk."""

    def finish(self, between: BetweenSteps = nothing) -> Path:
        """Make the file whole (all is committed) and close it; gives where it lies in the folder.

        Where that takes long, `between` is called at moments at which it may stop the work by raising.
        """

    def close(self) -> None:
        """Let go of the file without making it whole; called after `finish` too."""


def suffix_of(path: str | Path) -> str:
    """The suffix that names the kind of a file of vectors.

    >>> suffix_of("corpus.jsonl.gz"), suffix_of("a.b.HDF5")
    ('.jsonl.gz', '.hdf5')
    """
    name = Path(path).name.lower()
    for known in sorted(_WRITERS, key=len, reverse=True):
        if name.endswith(known) and name != known:
            return known
    raise UsageError(f"{path}: the suffix names the kind of the file; known: {', '.join(_WRITERS)}")


def writer_for(path: str | Path) -> type[VectorWriter]:
    """The writer for a file of that name; a missing package is told here."""
    module, name = _WRITERS[suffix_of(path)].split(":")
    writer: type[VectorWriter] = getattr(importlib.import_module(module), name)
    return writer
