"""Pre-trained word vectors, from which a word table can start."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class WordVectors:
    """The vectors of the requested words that a file has.

    >>> found = WordVectors(["bank"], np.zeros((1, 50), dtype=np.float32), total=400_000)
    >>> found.dim, found.summary(2)
    (50, '1 of 2 words found')
    """

    words: list[str]
    """Requested words that have a vector."""
    vectors: NDArray[np.float32]
    """(words, dim)."""
    total: int
    """Vectors in the file."""
    lowercased: int = 0
    """How many of the words were found only in lower case."""

    @property
    def dim(self) -> int:
        """Size of a vector."""
        return int(self.vectors.shape[1])

    def fingerprint(self) -> str:
        """Return a hash of words and vectors."""
        digest = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        digest.update(f"\n{self.vectors.shape}\n".encode())
        digest.update(np.ascontiguousarray(self.vectors, dtype="<f4").tobytes())
        return digest.hexdigest()

    def summary(self, wanted: int) -> str:
        """Return how many of `wanted` words were found, as text."""
        lower = f" ({self.lowercased:,} in lower case)" if self.lowercased else ""
        return f"{len(self.words):,} of {wanted:,} words found{lower}"


VectorLookup = Callable[[list[str]], WordVectors]
"""Returns the vectors of words; called when the vocabulary is known."""
