"""The input of an ELMo: a word's own vector from its characters, from a table, or from both."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.nn.char_cnn import CharCnn
from polyseme.text.characters import CodePointCharacters, Utf8Characters


@dataclass(frozen=True)
class WordInputs:
    """Distinct words as tensors."""

    characters: Tensor | None
    """(distinct, max_length): character ids."""
    lengths: Tensor | None
    """(distinct,): characters used, begin and end included; on the CPU, where the width of a batch is chosen."""
    words: Tensor | None
    """(distinct,): rows of the word table."""


@dataclass(frozen=True)
class ElmoInputs:
    """A batch: its distinct words, and their positions."""

    distinct: WordInputs
    index: Tensor
    """(batch, words + 2): distinct words, with begin and end tokens; on the CPU, where the layout is made."""


class WordEncoder(nn.Module):
    """A word's own vector: the character network, the word table, or both, and the projection."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.characters = CharCnn(config.characters) if config.characters else None
        self.words = nn.Embedding(config.words.size, config.words.dim) if config.words else None
        self.projection = nn.Linear(config.inputs, config.dim) if config.project else None

    def forward(self, inputs: WordInputs) -> Tensor:
        """Distinct words -> (distinct, dim)."""
        vectors = []
        if self.words is not None:
            vectors.append(self.words(inputs.words))
        if self.characters is not None:
            vectors.append(self.characters(inputs.characters, inputs.lengths))
        concatenated = torch.cat(vectors, dim=1)
        return self.projection(concatenated) if self.projection is not None else concatenated


def number_words(texts: Sequence[Sequence[str]], config: ElmoConfig) -> tuple[list[str], Tensor, Tensor]:
    """Return distinct words, their numbers (batch, words + 2) with begin and end tokens, and lengths with these."""
    numbers = defaultdict(itertools.count(2).__next__, {config.begin: 0, config.end: 1})  # a new word has the next number
    lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
    index = np.zeros((len(texts), int(lengths.max(initial=2))), dtype=np.int64)
    flat = np.fromiter(map(numbers.__getitem__, itertools.chain.from_iterable(texts)), dtype=np.int64)
    counts = lengths - 2
    begins = np.arange(len(texts)) * index.shape[1] + 1 - (np.cumsum(counts) - counts)
    index.reshape(-1)[np.repeat(begins, counts) + np.arange(len(flat))] = flat
    index[np.arange(len(texts)), lengths - 1] = 1
    return list(numbers), torch.from_numpy(index), torch.from_numpy(lengths)


def first_layer(vectors: Tensor, index: Tensor, half: int) -> Tensor:
    """Vectors of distinct words (distinct, dim) at the positions of a batch: layer 0, (1, batch, words + 2, 2 * half)."""
    padded = nn.functional.pad(vectors, (0, half - vectors.shape[1]))  # both directions begin with the same vector
    return torch.cat([padded, padded], dim=1)[index.to(vectors.device)][None]


def character_encoder(config: ElmoConfig, alphabet: Sequence[str] | None) -> Utf8Characters | CodePointCharacters | None:
    """Return what turns words into character ids; None: the model has no characters."""
    if config.characters is None:
        return None
    if config.characters.alphabet == "utf8":
        return Utf8Characters(config.characters.max_length)
    if alphabet is None:
        raise ConfigError("a model over code points needs its alphabet (characters.txt)")
    return CodePointCharacters(list(alphabet), config.characters.max_length)
