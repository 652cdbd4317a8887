"""What a model must know of a corpus' words: how each is spelled, and which row of its tables each one has.

Batches come as type ids, numbers of the corpus' distinct words (see `text/shards`); the model wants characters, rows of its
word table and output ids. All are looked up here, for the distinct words of a batch only; several threads may ask at once. Of
every type memory holds four bytes, its row; spellings are on the disk. On a GPU they lie there.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from polyseme.encoders.elmo import Elmo, WordInputs
from polyseme.nn.to_device import to_device
from polyseme.text.shards.character_ids import CharacterIds
from polyseme.text.shards.shards import Shards

_AT_ONCE = 1 << 16  # types that are brought to a GPU at a time


class WordLookup:
    """Type ids -> the tensors that a model reads and predicts, on its device."""

    def __init__(self, model: Elmo, shards: Shards) -> None:
        assert model.vocabulary is not None
        self._model = model
        self._rows = np.concatenate([model.vocabulary.ids(block).astype(np.int32) for block in shards.type_blocks()])
        self._spelling = CharacterIds.of(shards, model.speller) if model.speller is not None else None
        self._resident: Tensor | None = None

    def distinct(self, types: np.ndarray) -> tuple[WordInputs, np.ndarray]:
        """The distinct words of a batch, and the place of each of its words among them, in the shape of `types`."""
        seen = np.zeros(len(self._rows), dtype=bool)
        seen[types] = True
        distinct = np.flatnonzero(seen)
        if self._spelling is not None:  # in rising length, as the character network wants them
            distinct = distinct[np.argsort(self._spelling.lengths[distinct], kind="stable")]
        number = np.empty(len(self._rows), dtype=np.int32)  # a type's place among the distinct words
        number[distinct] = np.arange(len(distinct))
        characters = lengths = words = None
        if self._spelling is not None:
            characters = self._characters(self._spelling, distinct)
            lengths = torch.from_numpy(self._spelling.lengths[distinct].astype(np.int64))
        if self._model.config.words is not None:
            words = self.move(self._rows[distinct].astype(np.int64))
        return WordInputs(characters, lengths, words), number[types].astype(np.int64)

    def outputs(self, types: np.ndarray) -> Tensor:
        """The output ids of types; words outside the vocabulary have that of its unknown word."""
        return self.move(self._rows[types].astype(np.int64))

    def move(self, values: np.ndarray) -> Tensor:
        """An array on the model's device; to a GPU without waiting for it."""
        return to_device(torch.from_numpy(values), self._model.device)

    def _characters(self, spelling: CharacterIds, distinct: np.ndarray) -> Tensor:
        if self._model.device.type != "cuda":
            return torch.from_numpy(spelling.ids[distinct].astype(np.int64)).to(self._model.device)
        if self._resident is None or self._resident.device != self._model.device:
            kind = torch.int16 if spelling.ids.itemsize == 2 else torch.int32
            self._resident = torch.empty(spelling.ids.shape, dtype=kind, device=self._model.device)
            for begin in range(0, len(spelling.ids), _AT_ONCE):
                block = spelling.ids[begin : begin + _AT_ONCE]
                self._resident[begin : begin + _AT_ONCE] = torch.from_numpy(block.astype(np.int32))
        return self._resident.index_select(0, self.move(distinct)).long()
