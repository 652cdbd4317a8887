"""gensim: static and sense vectors of a model as `KeyedVectors`, and `KeyedVectors` as a model (extra `vectors`).

    from polyseme.integrations.gensim import keyed_vectors
    keyed_vectors("en").most_similar("bank")

`KeyedVectors` has one vector for each word. Of a model that reads sentences that is layer 0, the same in every sentence; with
sentences and words, it is one vector for each sense that the model tells apart: bank#1, bank#2. All of gensim's formats are
open to both (`save`, `save_word2vec_format`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from polyseme.analysis.config import SensesConfig
from polyseme.analysis.sense_vectors import sense_vectors
from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.base.options import build
from polyseme.encoders.batch import Sentence
from polyseme.encoders.static_vectors import static_vectors
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.integrations.model_reference import AnyModel, shared_model
from polyseme.text.word_vectors import WordVectors

try:
    from gensim.models import KeyedVectors
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.gensim needs gensim", "vectors") from error


def keyed_vectors(
    model: AnyModel = "en", sentences: Sequence[Sentence] | None = None, words: Iterable[str] | None = None, **options: Any
) -> KeyedVectors:
    """Return the static vectors of a model, or of the senses of `words` in `sentences`.

    `options`: those of `polyseme.senses` (`groups`, `layer`, `max_uses`).
    """
    if (sentences is None) != (words is None) or (options and sentences is None):
        raise UsageError("sense vectors need both sentences and words; static vectors need neither, and no options")
    for name, value in (("sentences", sentences), ("words", words)):
        if isinstance(value, str):
            raise UsageError(f"{name} is the string {value!r}; expected a list: put it into one")
    encoder = shared_model(model)
    if sentences is None or words is None:
        found = static_vectors(encoder)
    else:
        wanted, config = list(words), build({"senses": SensesConfig()}, options, "keyed_vectors")["senses"]
        if not wanted or any(not isinstance(word, str) for word in wanted):
            raise UsageError(f"words is {wanted!r}; expected a list of one word or more, such as ['bank']")
        texts = [encoder.words(sentence) for sentence in sentences]
        found = sense_vectors(encoder, wanted, corpus=texts, config=cast(SensesConfig, config)).word_vectors()
    vectors = KeyedVectors(vector_size=found.dim)
    vectors.add_vectors(found.words, found.vectors)
    return vectors


def from_keyed_vectors(vectors: KeyedVectors) -> WordVectorTable:
    """Return `KeyedVectors` as a model, for tasks, comparisons and `save_pretrained`."""
    if not isinstance(vectors, KeyedVectors) or not len(vectors):
        given = "KeyedVectors without words" if isinstance(vectors, KeyedVectors) else type(vectors).__name__
        raise UsageError(f"expected KeyedVectors, got {given}; a Word2Vec or FastText has them as model.wv")
    table = np.ascontiguousarray(vectors.vectors, dtype=np.float32)
    return WordVectorTable.from_vectors(WordVectors(list(vectors.index_to_key), table, len(table))).eval()
