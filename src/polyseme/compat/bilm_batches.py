"""The ids that bilm-tf's models read: characters or words, with begin and end tokens, 0 on padding; and its vector there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.compat.old_inputs import word_lists
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_words import WordInputs
from polyseme.text.characters import Utf8Characters
from polyseme.text.vocabulary import SPECIAL_TOKENS, Vocabulary


class Batcher:
    """Spells sentences as character ids + 1, (sentences, longest + 2, max_token_length), with begin and end tokens."""

    def __init__(self, lm_vocab_file: str | Path | None, max_token_length: int) -> None:
        self._characters = Utf8Characters(max_token_length)
        self._words = SPECIAL_TOKENS if lm_vocab_file is None else Vocabulary.read(lm_vocab_file)

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        return _padded([self._spell(words) for words in word_lists(sentences)], (self._characters.max_length,))

    def _spell(self, words: Sequence[str]) -> NDArray[np.int64]:
        ids = self._characters.encode(["<S>", *words, "</S>"])[0]
        for place, word in enumerate(words, start=1):
            if word in ("<S>", "</S>") and word not in self._words:  # a word like any other: it is spelled
                ids[place] = self._characters.encode(["?" + word[1:]])[0]
                ids[place, 1] = ord(word[0]) + 1
        return ids


class TokenBatcher:
    """Looks words up: their lines in the vocabulary + 1, (sentences, longest + 2), with begin and end tokens.

    A word that is not listed needs `<UNK>`; the original made it padding where the vocabulary lacks that.
    """

    def __init__(self, lm_vocab_file: str | Path) -> None:
        self._words = Vocabulary.read(lm_vocab_file)

    def batch_sentences(self, sentences: Sequence[Sequence[str]]) -> NDArray[np.int64]:
        return _padded([self._words.ids(["<S>", *words, "</S>"]) + 1 for words in word_lists(sentences)], ())


def _padded(rows: list[NDArray[np.int64]], more: tuple[int, ...]) -> NDArray[np.int64]:
    """Arrays (tokens, ...) of different lengths -> one array, zero on padding."""
    ids = np.zeros((len(rows), max(map(len, rows), default=2), *more), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return ids


def vector_of_padding(model: Elmo) -> Tensor:
    """What bilm-tf has on padding in layer 0, (dim,): the vector of a word without characters."""
    assert model.speller is not None
    length = model.speller.max_length
    ids = torch.zeros(1, length, dtype=torch.int64, device=model.device)
    with torch.no_grad():
        return model.tokens(WordInputs(ids, torch.tensor([length]), None))[0].repeat(2)
