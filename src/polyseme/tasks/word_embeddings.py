"""A task's own word and character embeddings: a table of word vectors, random or loaded, and a character network.

All networks of all tasks have them, with or without pre-trained encoders beside them, so that a comparison shows what an
encoder adds. The table has the words of the training data. At prediction another word gets its vector from the loaded table,
where that has it; else it is unknown: one vector for all, trained by word dropout, or a random vector of its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import arg
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.nn.char_cnn import CharCnn
from polyseme.nn.to_device import to_device
from polyseme.tasks.config import TaskWordConfig
from polyseme.text.characters import Utf8Characters
from polyseme.text.vocabulary import Vocabulary

UNKNOWN = 0  # the row of all words that are in no table


@dataclass(frozen=True)
class DistinctWordInputs:
    """Distinct words as tensors."""

    characters: Tensor | None
    """(distinct, max_length): character ids."""
    lengths: Tensor | None
    """(distinct,): characters used; on the CPU."""
    rows: Tensor
    """(distinct,): rows of the table."""
    outside: Tensor | None
    """(distinct, dim): vectors of words outside the table, zero for others; None: the table has all words."""

    def to(self, device: torch.device) -> DistinctWordInputs:
        """Return the same on a device; to a GPU without waiting for it."""
        characters = None if self.characters is None else to_device(self.characters, device)
        outside = None if self.outside is None else to_device(self.outside, device)
        return DistinctWordInputs(characters, self.lengths, to_device(self.rows, device), outside)


class WordEmbeddings(nn.Module):
    """Embeds distinct words (distinct, dim): the row of the table and the output of the character network, concatenated."""

    def __init__(self, config: TaskWordConfig, words: Sequence[str], loaded: WordVectorTable | None = None) -> None:
        super().__init__()
        if not config.enabled:
            if loaded is not None:
                raise ConfigError(
                    f"word vectors were given, but {arg('task_embeddings', False)} has no word table: omit one of both"
                )
            words, config = [], config.replace(dim=0, characters=None)
        self.config = config
        self.words = list(words)
        self._rows = {word: row for row, word in enumerate(self.words, start=1)}
        self._loaded = [loaded] if loaded is not None else []  # in a list: not among this module's weights
        self.table_dim = loaded.dim if loaded is not None else config.dim
        self.table = nn.Embedding(len(self.words) + 1, self.table_dim) if self.table_dim else None
        self.speller = Utf8Characters(config.characters.max_length) if config.characters else None
        self.characters = CharCnn(config.characters) if config.characters else None
        if self.dim == 0 and config.enabled:
            raise ConfigError(
                f"{arg('word_dim', 0)} without characters leaves no embeddings: give one, or {arg('task_embeddings', False)}"
            )
        self._start(loaded)

    @classmethod
    def of(
        cls, config: TaskWordConfig, sentences: Iterable[Sequence[str]], loaded: WordVectorTable | None = None
    ) -> WordEmbeddings:
        """Build embeddings for the words of the training data, most frequent first."""
        if not config.enabled:
            return cls(config, [], loaded)
        counts = Counter(word for sentence in sentences for word in sentence)
        words = [word for word, _ in counts.most_common()]
        Vocabulary(words).to_text()  # refuses a word with a line break now, and not in the first save
        return cls(config, words, loaded)

    @property
    def dim(self) -> int:
        """Size of a word's vector."""
        return self.table_dim + (self.config.characters.output_size if self.config.characters else 0)

    @property
    def loaded(self) -> WordVectorTable | None:
        """The loaded word vectors, if any."""
        return self._loaded[0] if self._loaded else None

    def _start(self, loaded: WordVectorTable | None) -> None:
        if self.table is None:
            return
        nn.init.uniform_(self.table.weight, -((3 / self.table_dim) ** 0.5), (3 / self.table_dim) ** 0.5)
        if loaded is None:
            return
        vectors, known = loaded.lookup(["<UNK>", *self.words])
        rows = torch.from_numpy(np.flatnonzero(known[1:]) + 1)
        with torch.no_grad():
            self.table.weight[rows] = torch.from_numpy(vectors[1:][known[1:]])
            self.table.weight[UNKNOWN] = torch.from_numpy(vectors[0])
        self.table.weight.requires_grad_(not self.config.freeze_word_vectors)

    def prepare(self, words: Sequence[str]) -> DistinctWordInputs:
        """Prepare distinct words for `forward`, on the CPU."""
        characters = lengths = None
        if self.speller is not None:
            ids, used = self.speller.encode(words)
            characters, lengths = torch.from_numpy(ids), torch.from_numpy(used)
        rows = np.fromiter((self._rows.get(word, UNKNOWN) for word in words), dtype=np.int64, count=len(words))
        return DistinctWordInputs(characters, lengths, torch.from_numpy(rows), self._outside(words, rows))

    def _outside(self, words: Sequence[str], rows: np.ndarray) -> Tensor | None:
        """Vectors of words outside the table; the vector of unknown words is a row of it."""
        outside = np.flatnonzero(rows == UNKNOWN)
        if self.table is None or not len(outside) or (self.loaded is None and self.config.unknown_words == "shared"):
            return None
        vectors_outside = np.zeros((len(words), self.table_dim), dtype=np.float32)
        names = [words[int(number)] for number in outside]
        known = np.zeros(len(names), dtype=bool)
        if self.loaded is not None:
            vectors, known = self.loaded.lookup(names)
            vectors_outside[outside[known]] = vectors[known]
        if self.config.unknown_words == "random":
            for number in np.flatnonzero(~known).tolist():
                vectors_outside[outside[number]] = _random(names[number], self.table_dim)
        return torch.from_numpy(vectors_outside)

    def forward(self, words: DistinctWordInputs) -> Tensor:
        parts = []
        if self.table is not None:
            rows = words.rows
            if self.training and self.config.word_dropout:
                rows = rows.masked_fill(torch.rand(rows.shape, device=rows.device) < self.config.word_dropout, UNKNOWN)
            vectors = self.table(rows)
            if words.outside is not None:
                has = words.outside.abs().sum(1, keepdim=True) > 0
                vectors = torch.where(has, words.outside.to(vectors.dtype), vectors)
            parts.append(vectors)
        if self.characters is not None:
            parts.append(self.characters(words.characters, words.lengths))
        if not parts:  # no embeddings
            return words.rows.new_zeros(len(words.rows), 0, dtype=torch.float32)
        return torch.cat([each.float() for each in parts], dim=1)


def _random(word: str, dim: int) -> np.ndarray:
    """Return a random vector that depends on the word alone, as large as those of a new table."""
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()[:8], "little")
    bound = (3 / dim) ** 0.5
    return np.random.default_rng(seed).uniform(-bound, bound, dim).astype(np.float32)
