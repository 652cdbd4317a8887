"""Sense vectors: the uses of a word in a text, clustered; the centre of each cluster is a vector, named bank#1, bank#2 ...

Programs that know one vector for each word (gensim, files of word2vec) can so read what a contextual model tells apart. The
first sense has the most uses. The number of senses follows from the uses (`polyseme.analysis.plane.clusters`), or is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from polyseme.analysis.plane import clusters
from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.encoders.layer_choice import LayerChoice
from polyseme.text.word_vectors import WordVectors

_SENTENCES = 256  # in memory at a time


def sense_vectors(
    model: Encoder,
    sentences: Sequence[Sentence],
    words: Iterable[str],
    *,
    senses: int | None = None,
    layers: LayerChoice = "mean",
    max_uses: int = 1000,
) -> WordVectors:
    """Return a vector for each sense of the given words in a text; a word that it has once has one sense.

    `senses`: so many for each word; None: by its uses. Of each word the first `max_uses` count. Case does not.
    """
    wanted = {word.lower() for word in words}
    if isinstance(layers, list | tuple) or layers == "all":
        raise UsageError(f"layers is {layers!r}; a sense has one vector: give top, mean or a number")
    uses: dict[str, list[np.ndarray]] = {}
    for begin in range(0, len(sentences), _SENTENCES):
        texts = [model.words(each) for each in sentences[begin : begin + _SENTENCES]]
        texts = [text for text in texts if wanted & {word.lower() for word in text}]
        for text, vectors in zip(texts, model.embed(texts, layers=layers), strict=True):
            for word, vector in zip(text, vectors, strict=True):
                found = uses.setdefault(word.lower(), []) if word.lower() in wanted else None
                if found is not None and len(found) < max_uses:
                    found.append(vector)
    if not uses:
        raise UsageError(f"the text has none of the words {', '.join(sorted(wanted)[:5])}: give words that it has")
    names, centres = [], []
    for word in sorted(uses):
        stack = np.stack(uses[word])
        groups = clusters(stack, senses)
        for number in range(int(groups.max()) + 1):
            names.append(f"{word}#{number + 1}")
            centres.append(stack[groups == number].mean(0))
    return WordVectors(names, np.stack(centres).astype(np.float32), len(names))
