"""Static vectors: one vector per word type, whatever its sentence.

A table of vectors (word2vec, GloVe, fastText) has nothing else. Of a model that reads sentences it is layer 0 of the words of
its vocabulary, if that layer does not depend on the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.nn.weight_version import WeightVersion, weight_version
from polyseme.text.word_vectors import WordVectors

_WORDS_PER_SENTENCE = 64  # where layer 0 is computed; the sentence does not matter
_computed: WeakKeyDictionary[Encoder, tuple[WeightVersion, WordVectors]] = WeakKeyDictionary()
"""The vectors of each model, for the next question: they take seconds."""


def static_vectors(encoder: Encoder) -> WordVectors:
    """Return the words of a model's vocabulary without its special tokens, each with its static vector."""
    if isinstance(encoder, WordVectorTable):
        weight = encoder.table.weight.detach().float().cpu().numpy()
        return WordVectors(list(encoder.vocabulary or ()), weight, len(weight))
    if not encoder.has_static_vectors:
        raise PolysemeError(f"models of kind {encoder.kind} have no static vectors: use an ELMo, or a table of word vectors")
    if encoder.vocabulary is None:
        add = f"give one with {arg('vocabulary')}" if encoder.bidirectional else "use an ELMo, or a table of word vectors"
        raise PolysemeError(f"{encoder.source} has no vocabulary to search: {add}")
    words, version, kept = vocabulary_words(encoder), weight_version(encoder), _computed.get(encoder)
    if kept is None or kept[0] != version or kept[1].words != words:
        kept = version, WordVectors(words, _first_layer(encoder, words), len(words))
        _computed[encoder] = kept
    return kept[1]


def _first_layer(encoder: Encoder, words: Sequence[str]) -> NDArray[np.float32]:
    sentences = [list(words[begin : begin + _WORDS_PER_SENTENCE]) for begin in range(0, len(words), _WORDS_PER_SENTENCE)]
    with progress("embedding", len(sentences), "sentences") as advance:
        return np.concatenate(encoder.embed(sentences, layers=0, progress=advance))


def spelled_vectors(encoder: Encoder, words: Sequence[str]) -> NDArray[np.float32]:
    """Return static vectors of words as if the model had a row for none of them, (words, dim): see `row_parts`."""
    vectors, parts = _first_layer(encoder, words), row_parts(encoder, words)
    return vectors if parts is None else vectors - parts


def lacks_row(encoder: Encoder, word: str) -> bool:
    """Whether a model that reads words by a table and by characters has no row for a word."""
    parts = row_parts(encoder, [word])
    return parts is not None and not parts.any()


def row_parts(encoder: Encoder, words: Sequence[str]) -> NDArray[np.float32] | None:
    """Return what its own row adds to the static vector of each word, beyond the row of the unknown word, (words, dim).

    None: the model does not read words both by a table and by characters. A word that the table lacks has nothing but its
    characters and the unknown word's row, so it is compared with others without these parts.
    """
    tokens = getattr(encoder, "tokens", None)
    table, projection = getattr(tokens, "words", None), getattr(tokens, "projection", None)
    if tokens is None or table is None or tokens.characters is None or encoder.vocabulary is None:
        return None
    vocabulary, config = encoder.vocabulary, encoder.config
    ids = vocabulary.ids([config.unknown, *(word[: config.words.max_characters] for word in words)])
    with torch.no_grad():
        rows = table.weight[torch.from_numpy(ids).to(table.weight.device)]
        parts = rows[1:] - rows[:1]
        if projection is not None:
            parts = parts @ projection.weight[:, : parts.shape[1]].T
        half = nn.functional.pad(parts, (0, encoder.dim // 2 - parts.shape[1]))
        return torch.cat([half, half], dim=1).float().cpu().numpy()


def vocabulary_words(encoder: Encoder) -> list[str]:
    """Return the words of a model's vocabulary, without special tokens."""
    vocabulary = encoder.vocabulary or ()
    special = {getattr(encoder.config, name, None) for name in ("begin", "end", "unknown")}
    return list(dict.fromkeys(word for word in vocabulary if word and word not in special))  # files may repeat some
