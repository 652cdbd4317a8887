"""The vocabulary of a text, and the id of each of its distinct words in it: for n-grams, the NNLM and ULMFiT."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError, arg
from polyseme.encoders.config import NgramConfig
from polyseme.pretraining.ngram_counts import UNKNOWN
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS

TypeIds = NDArray[np.int32]
"""The id in a vocabulary of each type (distinct word) of a text, (types,)."""
TOKENS = NgramConfig(order=1)
"""For the names of the special tokens, which are those of ARPA files."""


def index_vocabulary(shards: Shards, *, vocabulary_size: int | None, min_count: int) -> tuple[list[str], TypeIds]:
    """Return the vocabulary, special tokens first and then by falling count, and the id of each type of a text in it.

    Where the text itself has `<unk>` in place of rare words, it is the model's unknown word; so are the other special tokens
    inside a sentence, which could not be distinguished from real ones.
    """
    tokens = [TOKENS.begin, TOKENS.end, str(TOKENS.unknown)]
    words = list(tokens)
    ids = np.full(len(shards.counts), UNKNOWN, dtype=np.int32)
    room = len(shards.counts) + 1 if vocabulary_size is None else vocabulary_size
    types = itertools.chain.from_iterable(shards.type_blocks())
    for number, (word, count) in enumerate(zip(types, shards.counts, strict=True)):
        special = number < len(SPECIAL_TOKENS)
        if len(words) == room or (count < min_count and not special):  # counts fall
            break
        if word not in tokens and not special:
            ids[number] = len(words)
            words.append(word)
    if len(words) == len(tokens):
        raise PolysemeError(f"the vocabulary is empty: no word occurs {min_count} times; give a lower {arg('min_count')}")
    return words, ids
