"""Static vectors: one vector per word type, whatever its sentence.

A table of vectors (word2vec, GloVe, fastText) has nothing else. Of a model that reads sentences it is layer 0 of the words of
its vocabulary, if that layer does not depend on the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.word_vectors import WordVectors

_WORDS_PER_SENTENCE = 64  # where layer 0 is computed; the sentence does not matter


def static_vectors(encoder: Encoder) -> WordVectors:
    """Return the words of a model's vocabulary without its special tokens, each with its static vector."""
    if isinstance(encoder, WordVectorTable):
        weight = encoder.table.weight.detach().float().cpu().numpy()
        return WordVectors(list(encoder.vocabulary), weight, len(weight))
    if not encoder.has_own_vectors:
        raise PolysemeError(f"a {encoder.kind} has no static vectors: use an ELMo, or a table of word vectors")
    if getattr(encoder, "vocabulary", None) is None:
        add = f"give one with {arg('vocabulary')}" if isinstance(encoder, Elmo) else "use an ELMo, or a table of word vectors"
        raise PolysemeError(f"{encoder.source} has no vocabulary to search: {add}")
    words = vocabulary_words(encoder)
    sentences = [words[begin : begin + _WORDS_PER_SENTENCE] for begin in range(0, len(words), _WORDS_PER_SENTENCE)]
    with progress("embedding", len(sentences), "sentences") as advance:
        arrays = encoder.embed(sentences, layers=0, progress=advance)
    vectors = np.concatenate([array.reshape(-1, encoder.dim) for array in arrays])
    return WordVectors(words, vectors, len(words))


def has_vector(encoder: Encoder, words: Sequence[str]) -> NDArray[np.bool_]:
    """Whether a model has a vector for each word, (words,): in its vocabulary, or from characters or subwords.

    All other words share the vector of the unknown word, which says nothing about any of them.
    """
    if isinstance(encoder, WordVectorTable):
        return encoder.known(words)
    if has_closed_vocabulary(encoder):
        known = set(vocabulary_words(encoder))
        return np.array([word in known for word in words], dtype=bool)
    return np.ones(len(words), dtype=bool)


def has_closed_vocabulary(encoder: Encoder) -> bool:
    """Whether a model that reads sentences knows only the words of its vocabulary, and cannot spell others."""
    return isinstance(encoder, LeftToRight | NgramModel) or (isinstance(encoder, Elmo) and encoder.config.characters is None)


def vocabulary_words(encoder: Encoder) -> list[str]:
    """Return the words of a model's vocabulary, without special tokens."""
    vocabulary = getattr(encoder, "vocabulary", None) or ()
    special = {getattr(encoder.config, name, None) for name in ("begin", "end", "unknown")}
    return list(dict.fromkeys(word for word in vocabulary if word and word not in special))  # files may repeat some
