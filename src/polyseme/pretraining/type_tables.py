"""What a model must know of a corpus' words: how each is spelled, and which row of its tables each one has.

Batches come as type ids, numbers of the corpus' distinct words (see `text/shards`); the model wants characters, rows of its
word table and output ids. All are looked up here, for the distinct words of a batch only. On a GPU the tables lie there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from polyseme.encoders.elmo import Elmo, WordInputs
from polyseme.text.characters import Characters


class Spelling:
    """The characters of every distinct word of a corpus, spelled once: 100 bytes a word."""

    def __init__(self, speller: Characters, types: Sequence[str], *, at_once: int = 65536) -> None:
        self.ids = np.empty((len(types), speller.max_length), dtype=np.int16)
        self.lengths = np.empty(len(types), dtype=np.int64)
        for begin in range(0, len(types), at_once):
            end = min(begin + at_once, len(types))
            self.ids[begin:end], self.lengths[begin:end] = speller.encode(types[begin:end])


class TypeTables:
    """Type ids -> the tensors that a model reads and predicts, on its device."""

    def __init__(self, model: Elmo, types: Sequence[str]) -> None:
        assert model.vocabulary is not None
        self._model = model
        self._rows = model.vocabulary.ids(types)
        self._spelling = Spelling(model.speller, types) if model.speller is not None else None
        self._number = np.zeros(len(types), dtype=np.int64)  # scratch: a type's place among a batch's distinct words
        self._resident: Tensor | None = None

    def distinct(self, types: np.ndarray) -> tuple[WordInputs, np.ndarray]:
        """The distinct words of a batch, and the place of each of its words among them, in the shape of `types`."""
        seen = np.zeros(len(self._number), dtype=bool)
        seen[types] = True
        distinct = np.flatnonzero(seen)
        if self._spelling is not None:  # in rising length, as the character network wants them
            distinct = distinct[np.argsort(self._spelling.lengths[distinct], kind="stable")]
        self._number[distinct] = np.arange(len(distinct))
        characters = lengths = words = None
        if self._spelling is not None:
            characters = self._characters(self._spelling, distinct)
            lengths = torch.from_numpy(self._spelling.lengths[distinct])
        if self._model.config.words is not None:
            words = self.move(self._rows[distinct])
        return WordInputs(characters, lengths, words), self._number[types]

    def outputs(self, types: np.ndarray) -> Tensor:
        """The output ids of types; words outside the vocabulary have that of its unknown word."""
        return self.move(self._rows[types])

    def move(self, values: np.ndarray) -> Tensor:
        """An array on the model's device; to a GPU without waiting for it."""
        tensor = torch.from_numpy(values)
        if self._model.device.type != "cuda":
            return tensor.to(self._model.device)
        return tensor.pin_memory().to(self._model.device, non_blocking=True)

    def _characters(self, spelling: Spelling, distinct: np.ndarray) -> Tensor:
        if self._model.device.type != "cuda":
            return torch.from_numpy(spelling.ids[distinct].astype(np.int64)).to(self._model.device)
        if self._resident is None or self._resident.device != self._model.device:
            self._resident = torch.from_numpy(spelling.ids).to(self._model.device)
        return self._resident.index_select(0, self.move(distinct)).long()
