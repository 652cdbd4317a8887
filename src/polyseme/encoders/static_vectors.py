"""Static vectors: one vector per word type, whatever its sentence.

A table of vectors (word2vec, GloVe, fastText) has nothing else. Of a model that reads sentences it is layer 0 of the words of
its vocabulary, if that layer does not depend on the sentence.
"""

from __future__ import annotations

import numpy as np

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.text.word_vectors import WordVectors

_WORDS_PER_SENTENCE = 64  # where layer 0 is computed; the sentence does not matter


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
    words = vocabulary_words(encoder)
    sentences = [words[begin : begin + _WORDS_PER_SENTENCE] for begin in range(0, len(words), _WORDS_PER_SENTENCE)]
    with progress("embedding", len(sentences), "sentences") as advance:
        vectors = np.concatenate(encoder.embed(sentences, layers=0, progress=advance))
    return WordVectors(words, vectors, len(words))


def vocabulary_words(encoder: Encoder) -> list[str]:
    """Return the words of a model's vocabulary, without special tokens."""
    vocabulary = encoder.vocabulary or ()
    special = {getattr(encoder.config, name, None) for name in ("begin", "end", "unknown")}
    return list(dict.fromkeys(word for word in vocabulary if word and word not in special))  # files may repeat some
