"""Vectors of words that somebody has trained before: what a word table can start from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WordVectors:
    """The vectors of those wanted words that were found.

    >>> found = WordVectors(["bank"], np.zeros((1, 50), dtype=np.float32), total=400_000)
    >>> found.dim, found.summary(2)
    (50, '1 of 2 words found')
    """

    words: list[str]
    """Wanted words that have a vector, as they were asked for."""
    vectors: NDArray[np.float32]
    """(words, dim)."""
    total: int
    """Rows of the file."""
    lowercased: int = 0
    """How many of the words were found in lower case only."""

    @property
    def dim(self) -> int:
        """Size of a vector."""
        return int(self.vectors.shape[1])

    def fingerprint(self) -> str:
        """A hash of words and numbers: what a table made from them depends on."""
        whole = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        whole.update(f"\n{self.vectors.shape}\n".encode())
        whole.update(np.ascontiguousarray(self.vectors, dtype="<f4").tobytes())
        return whole.hexdigest()

    def summary(self, wanted: int) -> str:
        """How many of so many wanted words were found, for a person."""
        lower = f" ({self.lowercased:,} in lower case)" if self.lowercased else ""
        return f"{len(self.words):,} of {wanted:,} words found{lower}"


VectorLookup = Callable[[list[str]], WordVectors]
"""Gives the vectors of wanted words; called when the vocabulary is known."""
