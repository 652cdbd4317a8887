"""One vector for each line of a text: one at a time, or as rows of a NumPy file (.npy)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.base.array_file import save_array
from polyseme.base.display import count, html_table
from polyseme.base.errors import UsageError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import EncodeConfig
from polyseme.encoders.text_pooling import text_pooler
from polyseme.text.empty_texts import VECTOR, about_empty, has_text

_log = logging.getLogger(__name__)
_LINES = 1024  # that are encoded together
_SHOWN = 8  # numbers of a vector that fit a terminal


@dataclass(frozen=True)
class EncodedText:
    """One line of the input and its vector."""

    line: int
    """Its number, from 0."""
    text: str
    vector: np.ndarray
    """(dim,)."""

    def to_json(self) -> dict[str, Any]:
        return {"line": self.line, "text": self.text, "vector": self.vector.tolist()}

    def __str__(self) -> str:
        numbers = " ".join(f"{number:8.4f}" for number in self.vector[:_SHOWN])
        more = " ..." if len(self.vector) > _SHOWN else ""
        return f"line {self.line}: the first of {len(self.vector)} numbers\n{numbers}{more}"


@dataclass(frozen=True)
class EncodedFile:
    """A file of vectors that was written."""

    out: Path
    lines: int
    dim: int
    """Numbers of a vector."""

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.out), "lines": self.lines, "dim": self.dim}

    def __str__(self) -> str:
        return f"{self.out}: {count(self.lines, 'line')}, vectors of {self.dim} numbers"

    def _repr_html_(self) -> str:
        return html_table(["file", "lines", "dim"], [[self.out, self.lines, self.dim]])


def check_suffix(out: str | Path) -> None:
    """Refuse file types that are not written."""
    if Path(out).suffix != ".npy":
        raise UsageError(f"{arg('out')} is {str(out)!r}; allowed: a name that ends in .npy")


def encode_lines(model: Encoder, lines: Iterable[str], config: EncodeConfig) -> Iterator[EncodedText]:
    """Yield the vector of each line."""
    text_pooler(model, config.pooling)  # report a pooling that the model lacks before any text is read
    given, number = iter(lines), 0
    while some := list(itertools.islice(given, _LINES)):
        words = [line.split() if config.split_on_spaces else model.words(line) for line in some]
        vectors = model.encode(
            words,
            batch_size=config.batch_size,
            show_progress_bar=False,
            normalize_embeddings=config.normalize,
            pooling=config.pooling,
        )
        for line, vector in zip(some, vectors, strict=True):
            yield EncodedText(number, line, np.asarray(vector))
            number += 1


def encode_file(model: Encoder, lines: Iterable[str], out: str | Path, config: EncodeConfig) -> EncodedFile:
    """Write the vectors of all lines to a NumPy file (lines, dim), which is complete or absent."""
    check_suffix(out)
    dim = text_pooler(model, config.pooling).dim
    vectors, empty = [], []
    with progress("encoding", None, "lines") as advance:
        for found in encode_lines(model, lines, config):
            vectors.append(found.vector)
            if not has_text(found.text):
                empty.append(found.line + 1)
            advance(1)
    if empty:
        _log.warning("%s", about_empty(empty, VECTOR))
    array = np.stack(vectors) if vectors else np.zeros((0, dim), np.float32)
    save_array(Path(out), array)
    return EncodedFile(Path(out), len(array), dim)
