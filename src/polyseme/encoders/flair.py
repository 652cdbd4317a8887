"""Flair's character language models (Akbik et al. 2018): LSTMs that read a sentence letter by letter, with no word list.

A sentence is read as one string, its words joined by blanks. The vector of a word is the state of the forward model on the
blank after it, and that of the backward model on the blank before it, so that both have read the whole word and all that
lies on their side of it. They are frozen or trained as two groups. The next letters they predict are no words: the output
layers of the published models are not kept.

    \\n T h e _ b a n k _         forward:  a word's vector is the state on the blank behind it
    \\n k n a b _ e h T _         backward: the same string from its end

`polyseme.formats.flair` reads the published files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from polyseme.base.errors import FormatError
from polyseme.base.files import read_bytes, write_text
from polyseme.base.tensor_files import load_weights, read_tensors, write_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.config import FlairConfig
from polyseme.nn.meta_init import meta_init
from polyseme.text.words import WHITESPACE, Splitter

WEIGHTS, CHARACTERS = "model.safetensors", "characters.json"
_CHUNK = 512  # letters that are read at once: only states on blanks are kept


class CharacterLstm(nn.Module):
    """One direction: vectors of letters, LSTMs, and a projection where the model has one."""

    def __init__(self, config: FlairConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.symbols, config.character_dim)
        self.lstm = nn.LSTM(config.character_dim, config.hidden_size, config.lstm_layers)
        self.projection = None if config.projection_size is None else nn.Linear(config.hidden_size, config.projection_size)

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        """Letters (batch, letters) and positions (batch, words) -> the states there, (batch, words, dim)."""
        found, state = None, None
        for begin in range(0, ids.shape[1], _CHUNK):
            states, state = self.lstm(self.table(ids[:, begin : begin + _CHUNK].T), state)  # (letters, batch, hidden)
            if found is None:
                found = states.new_zeros(*wanted.shape, states.shape[-1])
            here = (wanted >= begin) & (wanted < begin + _CHUNK)  # (batch, words)
            rows, words = here.nonzero(as_tuple=True)
            found = found.index_put((rows, words), states[wanted[rows, words] - begin, rows])
        assert found is not None  # a string is never empty
        return found if self.projection is None else self.projection(found)


class Flair(Encoder):
    """A forward and a backward character language model, or one of them; `polyseme.load` reads one.

    >>> config = FlairConfig(symbols=3, character_dim=4, hidden_size=5)
    >>> Flair(config, characters=["<unk>", "a", " "]).embed([["a", "aa"]])[0].shape
    (1, 2, 10)
    """

    kind = "flair"
    layers = 1
    config_type = FlairConfig
    config: FlairConfig
    has_static_vectors = False

    def __init__(self, config: FlairConfig, *, characters: Sequence[str], splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, splitter)
        self.characters = list(characters)
        self._ids = {symbol: number for number, symbol in enumerate(self.characters)}
        self.models = nn.ModuleDict({f"{direction}_lm": CharacterLstm(config) for direction in config.directions})

    @property
    def dim(self) -> int:
        return (self.config.projection_size or self.config.hidden_size) * len(self.config.directions)

    def layer_groups(self) -> dict[str, nn.Module]:
        return {direction: self.models[f"{direction}_lm"] for direction in self.config.directions}

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        strings = [" ".join(text) for text in texts]
        inputs = {}
        for direction in self.config.directions:
            read = strings if direction == "forward" else [string[::-1] for string in strings]
            letters = [self._letters(f"{self.config.document_delimiter}{string} ") for string in read]
            ids = nn.utils.rnn.pad_sequence(letters, batch_first=True)  # what is behind the end changes nothing before it
            wanted = torch.zeros(mask.shape, dtype=torch.int64)
            for row, text in enumerate(texts):
                wanted[row, : len(text)] = self._positions(text, direction)
            inputs[direction] = (ids.to(self.device), wanted.to(self.device))
        return Batch(inputs, mask.to(self.device), lengths.to(self.device))

    def _letters(self, string: str) -> Tensor:
        return torch.tensor([self._ids.get(letter, 0) for letter in string])  # 0: unknown

    def _positions(self, words: list[str], direction: str) -> Tensor:
        """Where the blank behind each word is, in reading order."""
        ends = torch.tensor([len(word) + 1 for word in words], dtype=torch.int64)
        behind = ends.cumsum(0) - 1 if direction == "forward" else ends.flip(0).cumsum(0).flip(0) - 1
        return behind + len(self.config.document_delimiter)

    def forward(self, batch: Batch) -> Layers:
        states = torch.cat([model(*batch.inputs[direction]) for direction, model in self.layer_groups().items()], dim=-1)
        return Layers(states=states.masked_fill(~batch.mask[..., None], 0.0)[None], mask=batch.mask)

    # ---- model folders

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        write_tensors(self.state_dict(), folder / WEIGHTS, dtype)
        write_text(folder / CHARACTERS, json.dumps(self.characters, ensure_ascii=False) + "\n")

    @classmethod
    def read_files(cls, folder: Path, config: Any, splitter: Splitter) -> Self:
        path = folder / CHARACTERS
        if not path.exists():
            raise FormatError(folder, f"lacks {CHARACTERS}")
        try:
            characters = json.loads(read_bytes(path))
        except ValueError as error:
            raise FormatError(path, f"is no JSON ({error})") from error
        if not isinstance(characters, list) or not all(isinstance(each, str) for each in characters):
            raise FormatError(path, "is no list of strings")
        return cls.from_weights(config, read_tensors(folder / WEIGHTS), characters=characters, where=folder, splitter=splitter)

    @classmethod
    def from_weights(
        cls, config: FlairConfig, weights: dict[str, Tensor], *, characters: Sequence[str], where: Path, splitter: Splitter
    ) -> Self:
        """Make a model of tensors that were read; wrong names, shapes or numbers of characters are errors."""
        if len(characters) != config.symbols:
            raise FormatError(where, f"has {len(characters)} characters; its table has {config.symbols} rows")
        with meta_init():
            model = cls(config, characters=characters, splitter=splitter)
        load_weights(model, weights, where)
        return model.eval()

    def info(self) -> dict[str, Any]:
        return super().info() | {"characters": len(self.characters), "directions": " ".join(self.config.directions)}
