"""Files of vectors: what every file type shares, and which suffix selects which type.

    .hdf5 .h5     as bilm-tf wrote it: one dataset per line, named by the line number from 0, (layers, words, dim)
    .npz          the same as NumPy arrays: np.load(file)["0"]
    .parquet      one row per line: line, words, layers, dim, vectors (flat, to be reshaped to (layers, words, dim))
    .jsonl        one object per line: {"line": 0, "words": [...], "vectors": [layers][words][dim]}; .jsonl.gz likewise

Where a single layer was chosen, arrays are (words, dim); Parquet then has layers = 1.

A writer works inside a folder (`OUT.part`) and can be resumed after a kill at any moment: `commit` makes everything written
so far durable and returns a *resume point*; a writer made with that resume point continues there and ignores anything later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from polyseme.base.errors import UsageError
from polyseme.base.imports import import_object
from polyseme.encoders.embedding_stream import EmbeddedLine

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


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    """What describes a file as a whole."""

    fp16: bool = False
    """16-bit floats instead of 32-bit ones."""
    metadata: dict[str, str] = field(default_factory=dict)
    """Where the vectors come from; stored if the file type has metadata."""


class DamagedPart(Exception):
    """The files that a resume point refers to are gone or damaged, so the work starts again."""


def nothing() -> None:
    """Do nothing between two steps."""


class VectorWriter(Protocol):
    """Writes one type of file inside a folder of its own."""

    def __init__(self, folder: Path, info: FileInfo, resume: ResumePoint | None) -> None:
        """Begin, or continue from a resume point; raise `DamagedPart` if that is impossible."""

    def write(self, rows: Sequence[EmbeddedLine]) -> None:
        """Add lines, in order."""

    def commit(self) -> ResumePoint:
        """Make everything written so far durable."""

    def finish(self, between: BetweenSteps = nothing) -> Path:
        """Complete the file (everything is committed), close it and return its path in the folder.

        If that takes long, `between` is called at points where it may stop the work by raising.
        """

    def close(self) -> None:
        """Close the file without completing it; also called after `finish`."""


def suffix_of(path: str | Path) -> str:
    """Return the suffix that selects the file type.

    >>> suffix_of("corpus.jsonl.gz"), suffix_of("a.b.HDF5")
    ('.jsonl.gz', '.hdf5')
    """
    name = Path(path).name.lower()
    for known in sorted(_WRITERS, key=len, reverse=True):
        if name.endswith(known) and name != known:
            return known
    raise UsageError(f"{path}: the suffix selects the file type; allowed: {', '.join(_WRITERS)}")


def writer_for(path: str | Path) -> type[VectorWriter]:
    """Return the writer class for a file name; raise if its package is not installed."""
    writer: type[VectorWriter] = import_object(_WRITERS[suffix_of(path)])
    return writer
