"""fastText (Bojanowski et al. 2017): word vectors that are also made of subwords, so that unknown words have vectors too.

A word's subwords are its runs of some letters, the edges `<` and `>` counted as letters; each is hashed to one of a fixed
number of rows. A known word has its trained vector in the table, as in word2vec; that of an unknown word is the mean of its
subwords' rows. Subwords and hash are those of the published program and of gensim, written here so that a model needs
neither to be used; a word too short to have any subword has zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from polyseme.encoders.config import FastTextConfig
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import WHITESPACE, Splitter


class FastTextTable(WordVectorTable):
    """A table word -> vector, and the rows of subwords; one layer.

    >>> vectors = WordVectors(["bank"], np.ones((1, 2), dtype=np.float32), total=1)
    >>> table = FastTextTable.from_parts(vectors, np.full((10, 2), 3, dtype=np.float32))
    >>> table.lookup(["bank", "banks"]).vectors.tolist()
    [[1.0, 1.0], [3.0, 3.0]]
    """

    kind = "fasttext"
    config_type = FastTextConfig
    config: FastTextConfig

    def __init__(self, config: FastTextConfig, *, vocabulary: Vocabulary, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, vocabulary=vocabulary, splitter=splitter)
        self.subwords: Tensor
        self.register_buffer("subwords", torch.zeros(config.buckets, config.dim))

    @classmethod
    def from_parts(
        cls,
        vectors: WordVectors,
        subwords: NDArray[np.float32],
        *,
        min_n: int = 3,
        max_n: int = 6,
        lowercase: Literal["auto", "fallback", "never"] = "auto",
        splitter: Splitter = WHITESPACE,
    ) -> Self:
        """A table of trained words and rows of subwords (buckets, dim), both taken over without a copy."""
        sizes: dict[str, Any] = {"size": len(vectors.words), "dim": vectors.dim, "buckets": len(subwords)}
        config = FastTextConfig(lowercase=lowercase, min_n=min_n, max_n=max_n, **sizes)
        return cls._from_arrays(config, vectors, {"subwords": subwords}, splitter)

    def known(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each word has a vector of its own, (words,): in the table, or long enough to have subwords."""
        return super().known(words) | np.array([bool(self._subwords(word)) for word in words], dtype=bool)

    def _subwords(self, word: str) -> list[int]:
        return subword_rows(word, self.config.min_n, self.config.max_n, self.config.buckets)

    def _row(self, word: str, others: dict[str, int]) -> int:
        row = self._find(word)
        return -1 - others.setdefault(word.lower() if self._lowers else word, len(others)) if row is None else row

    def _others(self, names: list[str]) -> Tensor:
        """(others, dim): the mean of each word's subwords."""
        if not names:
            return torch.zeros(0, self.dim, device=self.device)
        rows = [self._subwords(name) for name in names]
        counts = torch.tensor([len(some) for some in rows])
        places = torch.tensor([row for some in rows for row in some], dtype=torch.long)
        starts = (counts.cumsum(0) - counts).to(self.device)
        sums = embedding_bag(places.to(self.device), self.subwords, starts, mode="sum")  # an empty bag is zeros
        return sums / counts.clamp(min=1).to(sums)[:, None]

    def info(self) -> dict[str, Any]:
        made = f"made of subwords of {self.config.min_n} to {self.config.max_n} letters"
        facts = super().info()
        parameters = facts["parameters"] + self.subwords.numel()
        return facts | {"parameters": parameters, "unknown_words": made, "subword_rows": self.config.buckets}


def subword_rows(word: str, min_n: int, max_n: int, buckets: int) -> list[int]:
    """The rows of a word's subwords, in the order of where they begin: FNV-1a of their UTF-8, each byte read as signed.

    >>> subword_rows("at", 3, 6, 2_000_000), subword_rows("", 3, 6, 2_000_000)
    ([1096174, 887408, 351106], [])
    """
    letters = [letter.encode("utf-8", "surrogatepass") for letter in f"<{word}>"]
    rows = []
    for begin in range(len(letters)):
        value = 2166136261
        for length, letter in enumerate(letters[begin : begin + max_n], start=1):
            for byte in letter:
                signed = byte if byte < 128 else byte | 0xFFFFFF00
                value = (value ^ signed) * 16777619 & 0xFFFFFFFF
            lone_edge = length == 1 and begin in (0, len(letters) - 1)
            if length >= min_n and not lone_edge:
                rows.append(value % buckets)
    return rows
