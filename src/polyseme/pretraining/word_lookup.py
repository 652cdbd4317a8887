"""From type ids to what a model reads: the characters of each word, and its rows in the word table and the output layer.

Batches come as type ids, numbers of the distinct words of a corpus (see `text/shards`). They are looked up for the distinct
words of a batch only; several threads may do so at once. Memory holds four bytes for each type, its row; character ids are
memory-mapped, or on the GPU.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from polyseme.encoders.elmo import Elmo, WordInputs
from polyseme.nn.to_device import to_device
from polyseme.text.shards.character_ids import CharacterIds
from polyseme.text.shards.shards import Shards

_BLOCK = 1 << 16  # types that are copied to a GPU at a time


class WordLookup:
    """Turns type ids into the tensors that a model reads and predicts, on its device."""

    def __init__(self, model: Elmo, shards: Shards) -> None:
        assert model.vocabulary is not None
        self._model = model
        self._rows = np.concatenate([model.vocabulary.ids(block).astype(np.int32) for block in shards.type_blocks()])
        self._character_ids = CharacterIds.of(shards, model.speller) if model.speller is not None else None
        self._resident: Tensor | None = None

    def distinct(self, types: np.ndarray) -> tuple[WordInputs, np.ndarray]:
        """Return the distinct words of a batch, and the index of each of its words among them, in the shape of `types`."""
        seen = np.zeros(len(self._rows), dtype=bool)
        seen[types] = True
        distinct = np.flatnonzero(seen)
        if self._character_ids is not None:  # by length, as the character network needs them
            distinct = distinct[np.argsort(self._character_ids.lengths[distinct], kind="stable")]
        index = np.empty(len(self._rows), dtype=np.int32)  # index of a type among the distinct words
        index[distinct] = np.arange(len(distinct))
        characters = lengths = words = None
        if self._character_ids is not None:
            characters = self._characters(self._character_ids, distinct)
            lengths = torch.from_numpy(self._character_ids.lengths[distinct].astype(np.int64))
        if self._model.config.words is not None:
            words = self.move(self._rows[distinct].astype(np.int64))
        return WordInputs(characters, lengths, words), index[types].astype(np.int64)

    def outputs(self, types: np.ndarray) -> Tensor:
        """Return the output ids of types; words outside the vocabulary have that of its unknown word."""
        return self.move(self._rows[types].astype(np.int64))

    def move(self, values: np.ndarray) -> Tensor:
        """Copy an array to the model's device; to a GPU without waiting for it."""
        return to_device(torch.from_numpy(values), self._model.device)

    def _characters(self, characters: CharacterIds, distinct: np.ndarray) -> Tensor:
        if self._model.device.type != "cuda":
            return torch.from_numpy(characters.ids[distinct].astype(np.int64)).to(self._model.device)
        if self._resident is None or self._resident.device != self._model.device:
            kind = torch.int16 if characters.ids.itemsize == 2 else torch.int32
            self._resident = torch.empty(characters.ids.shape, dtype=kind, device=self._model.device)
            for begin in range(0, len(characters.ids), _BLOCK):
                block = characters.ids[begin : begin + _BLOCK]
                self._resident[begin : begin + _BLOCK] = torch.from_numpy(block.astype(np.int32))
        return self._resident.index_select(0, self.move(distinct)).long()
