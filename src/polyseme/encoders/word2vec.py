"""Static word vectors: a table with one vector per word, the same in every sentence.

The result of word2vec (Mikolov et al. 2013), GloVe (Pennington et al. 2014) and the like. The table is frozen until `unfreeze`.
A missing word is looked up in lower case where the table has no capitals or the config says so; the config also says which
vector unknown words have. The mean and deviation of the vectors are stored when the table is made, so that training it does not
change unknown words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.files import write_text
from polyseme.base.tensor_files import load_weights, read_tensors, write_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.config import WordVectorConfig
from polyseme.encoders.language_model import check_count
from polyseme.encoders.results import Similar, SimilarWords
from polyseme.nn.meta_init import meta_init
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.word_vectors import WordVectors
from polyseme.text.words import WHITESPACE, Splitter

UNKNOWN = ("<unk>", "UNK", "<UNK>")
"""Names of the unknown token in tables; the first that a table has is used."""
_BLOCK = 1 << 13  # rows of a large table that are read together


@dataclass(frozen=True)
class TableInputs:
    """A batch of words as rows of the table."""

    rows: Tensor
    """(batch, words): a row of the table, or -1, -2, ... for the first, second, ... of `others`; 0 on padding."""
    others: Tensor
    """(others, dim): vectors of words that the table lacks."""


class Lookup(NamedTuple):
    """The vectors of some words."""

    vectors: NDArray[np.float32]
    """(words, dim)."""
    known: NDArray[np.bool_]
    """(words,): whether the table has the word."""


class WordVectorTable(Encoder):
    """A table word -> vector, one layer; `polyseme.load` reads one from a file of vectors.

    >>> vectors = WordVectors(["bank", "river"], np.array([[1, 2], [3, 4]], dtype=np.float32), total=2)
    >>> table = WordVectorTable.from_vectors(vectors, unknown="zero")
    >>> table.lookup(["River", "tree"])
    Lookup(vectors=array([[3., 4.],
           [0., 0.]], dtype=float32), known=array([ True, False]))
    """

    kind = "word2vec"
    layers = 1
    static = True
    config_type: ClassVar[type[Config]] = WordVectorConfig
    config: WordVectorConfig
    vocabulary: Vocabulary

    def __init__(self, config: WordVectorConfig, *, vocabulary: Vocabulary, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, splitter)
        if len(vocabulary) != config.size:
            raise ConfigError(f"size is {config.size}, but there are {len(vocabulary)} words; a table has a row for each")
        self.vocabulary = vocabulary
        self.table = nn.Embedding(config.size, config.dim)
        self.mean: Tensor
        self.deviation: Tensor
        self.register_buffer("mean", torch.zeros(config.dim))
        self.register_buffer("deviation", torch.ones(config.dim))
        self._lowers = config.lowercase == "fallback" or (config.lowercase == "auto" and not _has_capitals(vocabulary))
        rows = (vocabulary.find(token) for token in UNKNOWN)
        self._unknown_row = next((row for row in rows if row is not None), None)
        self.freeze()

    @classmethod
    def from_vectors(
        cls,
        vectors: WordVectors,
        *,
        unknown: Literal["vector", "random", "zero"] = "vector",
        lowercase: Literal["auto", "fallback", "never"] = "auto",
        splitter: Splitter = WHITESPACE,
    ) -> Self:
        """A table of vectors that were trained before, which it takes over without a copy."""
        config = WordVectorConfig(size=len(vectors.words), dim=vectors.dim, unknown=unknown, lowercase=lowercase)
        return cls._from_arrays(config, vectors, {}, splitter)

    @classmethod
    def _from_arrays(
        cls, config: WordVectorConfig, vectors: WordVectors, more: dict[str, NDArray[Any]], splitter: Splitter
    ) -> Self:
        """A table of vectors and `more` tensors."""
        array = np.ascontiguousarray(vectors.vectors, dtype=np.float32)
        arrays = {"table.weight": array, **_moments(array), **more}
        weights = {name: torch.from_numpy(np.ascontiguousarray(each, dtype=np.float32)) for name, each in arrays.items()}
        return cls._assemble(config, weights, "vectors", Vocabulary(vectors.words, unknown=None), splitter)

    @classmethod
    def _assemble(
        cls, config: WordVectorConfig, weights: dict[str, Tensor], where: str | Path, vocabulary: Vocabulary, splitter: Splitter
    ) -> Self:
        with meta_init():  # no second table, of random numbers
            model = cls(config, vocabulary=vocabulary, splitter=splitter)
        load_weights(model, weights, where)
        model.freeze()
        return model.eval()

    def layer_groups(self) -> dict[str, nn.Module]:
        return {"table": self.table}

    # ---- words -> vectors

    def known(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether the table has each word, as it is or in lower case, (words,)."""
        return np.array([self._find(word) is not None for word in self._list(words)], dtype=bool)

    def lookup(self, words: Sequence[str]) -> Lookup:
        """The vector of each word, known or not, and whether it is known."""
        listed = self._list(words)
        with torch.no_grad():
            rows, others = self._number([listed])
            vectors = self._vectors(rows.to(self.device), others)[0]
        return Lookup(vectors.float().cpu().numpy(), self.known(listed))

    def most_similar(self, word: str, count: int = 10) -> SimilarWords:
        """The words of the table nearest to a word by the cosine, nearest first; the word itself is left out."""
        if not self.known([word])[0]:
            raise UsageError(
                f"{word!r} is not among the {len(self.vocabulary):,} words of the table: use another, or fastText vectors"
            )
        check_count(count)
        row, vector = self._find(word), torch.from_numpy(self.lookup([word]).vectors[0])
        with torch.no_grad():
            weight = self.table.weight
            tiny = torch.finfo(weight.dtype).tiny
            vector = (vector / torch.linalg.vector_norm(vector).clamp_min(tiny)).to(weight)
            cosines = (weight @ vector) / torch.linalg.vector_norm(weight, dim=1).clamp_min(tiny)
            if row is not None:
                cosines[row] = -torch.inf
            best = cosines.topk(min(count, len(cosines) - (row is not None)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return SimilarWords((Similar(self.vocabulary[row], cosine) for row, cosine in pairs), word)

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        rows, others = self._number(texts)
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(rows.shape[1]) < lengths[:, None]
        return Batch(TableInputs(rows.to(self.device), others), mask.to(self.device), lengths.to(self.device))

    def forward(self, batch: Batch) -> Layers:
        inputs: TableInputs = batch.inputs
        vectors = self._vectors(inputs.rows, inputs.others)  # (batch, words, dim)
        return Layers(states=vectors.masked_fill(~batch.mask[..., None], 0.0)[None], mask=batch.mask)

    def _list(self, words: Sequence[str]) -> list[str]:
        if isinstance(words, str):
            raise UsageError("expected a list of words, got one string: put it into a list")
        return self.words(words)

    def _find(self, word: str) -> int | None:
        row = self.vocabulary.find(word)
        return self.vocabulary.find(word.lower()) if row is None and self._lowers else row

    def _number(self, texts: list[list[str]]) -> tuple[Tensor, Tensor]:
        """Texts -> their rows (batch, words) as in `TableInputs`, and the vectors of the unknown words."""
        rows = np.zeros((len(texts), max(map(len, texts), default=0)), dtype=np.int64)
        others: dict[str, int] = {}  # by the word where each has its own vector, else one for all
        for number, text in enumerate(texts):
            rows[number, : len(text)] = [self._row(word, others) for word in text]
        return torch.from_numpy(rows), self._others(list(others))

    def _row(self, word: str, others: dict[str, int]) -> int:
        row = self._find(word)
        if row is not None:
            return row
        if self.config.unknown == "vector" and self._unknown_row is not None:
            return self._unknown_row
        name = "" if self.config.unknown != "random" else word.lower() if self._lowers else word
        return -1 - others.setdefault(name, len(others))

    def _others(self, names: list[str]) -> Tensor:
        """(others, dim)."""
        if self.config.unknown == "vector":
            return self.mean.expand(len(names), -1)
        if self.config.unknown == "zero" or not names:
            return torch.zeros(len(names), self.dim, device=self.device)
        drawn = torch.from_numpy(np.stack([_normals(name, self.dim) for name in names]))
        return self.mean + self.deviation * drawn.to(self.mean)

    def _vectors(self, rows: Tensor, others: Tensor) -> Tensor:
        """Places as in `TableInputs` (batch, words) -> (batch, words, dim)."""
        vectors: Tensor = self.table(rows.clamp(min=0))
        if not len(others):
            return vectors
        return torch.where((rows < 0)[..., None], others.to(vectors.dtype)[(-1 - rows).clamp(min=0)], vectors)

    # ---- in a folder

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        tensors = self.state_dict()
        exact = {name: tensors.pop(name) for name in ("mean", "deviation")}
        write_tensors(tensors, folder / "model.safetensors", dtype, exact=exact)
        write_text(folder / "vocabulary.txt", self.vocabulary.to_text())

    @classmethod
    def read_files(cls, folder: Path, config: WordVectorConfig, splitter: Splitter) -> Self:
        if not (folder / "vocabulary.txt").exists():
            raise FormatError(folder, "lacks vocabulary.txt, the words of its table")
        vocabulary = Vocabulary.read(folder / "vocabulary.txt", unknown=None)
        if len(vocabulary) != config.size:
            raise FormatError(folder / "vocabulary.txt", f"has {len(vocabulary)} words; the table has {config.size} rows")
        path = folder / "model.safetensors"
        return cls._assemble(config, read_tensors(path), path, vocabulary, splitter)

    def info(self) -> dict[str, Any]:
        own = "mean of all" if self._unknown_row is None else f"vector of {self.vocabulary[self._unknown_row]}"
        return super().info() | {
            "vocabulary": len(self.vocabulary),
            "unknown_words": own if self.config.unknown == "vector" else self.config.unknown,
            "lower_case": self._lowers,
            "language_model": False,
        }


def _has_capitals(words: Iterable[str]) -> bool:
    """Whether any word has a capital letter; special tokens such as <UNK> do not count."""
    return any(word != word.lower() and word not in UNKNOWN and not (word[0] == "<" and word[-1] == ">") for word in words)


def _moments(vectors: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
    """Mean and deviation of each number of the vectors (words, dim), some rows at a time: a large table has no second copy."""
    blocks = [vectors[begin : begin + _BLOCK] for begin in range(0, len(vectors), _BLOCK)]
    mean = sum(block.sum(0, dtype=np.float64) for block in blocks) / len(vectors)
    square = sum(np.square(block - mean).sum(0) for block in blocks) / len(vectors)
    return {"mean": mean, "deviation": np.sqrt(square)}


def _normals(word: str, dim: int) -> NDArray[np.float64]:
    """Numbers from the normal distribution that a word's hash decides, (dim,): no generator whose next version draws others.

    >>> _normals("bank", 3).round(4).tolist() == _normals("bank", 3).round(4).tolist() != _normals("river", 3).round(4).tolist()
    True
    """
    data = hashlib.shake_256(word.encode("utf-8", "surrogatepass")).digest(8 * dim)
    radius, angle = (np.frombuffer(data, dtype="<u4").reshape(2, dim) + 0.5) / 2**32  # uniform in (0, 1)
    return np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)  # Box and Muller 1958
