"""Whether a model tells the senses of the sample words apart: the nearest other place of the same word has the same sense.

Each sentence asks in turn and all others answer, so that nothing is trained and no sentence answers for itself. A model
that knows no context (layer 0) sees one vector for all places of a word and can only guess.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.places import normalised, vectors_at
from polyseme.analysis.samples import Sample, place_of
from polyseme.analysis.table import Table
from polyseme.base.errors import PolysemeError
from polyseme.encoders.base import Encoder

SHARE = "same sense"


def probe_samples(encoder: Encoder, samples: Sequence[Sample]) -> Table:
    """The share of sentences whose nearest other place of the same word has their sense: for each layer over all words, and in
    the facts for each word by the top layer."""
    found = [(sample, place) for sample in samples if (place := place_of(sample, encoder)) is not None]
    if not found:
        raise PolysemeError("the model cuts none of the sample words as one word, so it has no vector for them")
    sentences = [encoder.words(sample.sentence) for sample, _ in found]
    stack = vectors_at(encoder, sentences, [[range(place, place + 1)] for _, place in found])
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, (sample, _) in enumerate(found):
        by_word[sample.word].append(number)
    senses = np.array([sample.sense for sample, _ in found])
    shares = {word: _shares(stack[:, rows], senses[rows]) for word, rows in by_word.items() if len(rows) > 1}
    counts = np.array([len(by_word[word]) for word in shares])
    over_all = counts @ np.stack(list(shares.values())) / counts.sum()
    guessed = {word: float(_guess(senses[by_word[word]])) for word in shares}
    return Table(
        title=f"senses of {len(shares)} words in {len(found)} sentences",
        measures=(SHARE,),
        rows={f"layer {layer}": {SHARE: float(share)} for layer, share in enumerate(over_all)},
        baselines={"a guess": {SHARE: float(counts @ np.array(list(guessed.values())) / counts.sum())}},
        facts={"cut_otherwise": len(samples) - len(found)} | {word: round(float(each[-1]), 3) for word, each in shares.items()},
    )


def _shares(stack: NDArray[np.floating], senses: NDArray[np.str_]) -> NDArray[np.float64]:
    """For each layer, over the places of one word (layers, places, dim)."""
    shares = []
    for layer in normalised(stack.astype(np.float32)):
        cosines = np.round(layer @ layer.T, 6)
        np.fill_diagonal(cosines, -2.0)
        nearest = cosines == cosines.max(1, keepdims=True)  # where several are equally near, each counts for its part
        same = senses[:, None] == senses[None, :]
        shares.append(float(((nearest & same).sum(1) / nearest.sum(1)).mean()))
    return np.array(shares)


def _guess(senses: NDArray[np.str_]) -> float:
    """The share that any other place at random would give."""
    same = (senses[:, None] == senses[None, :]).sum(1) - 1
    return float(np.mean(same / (len(senses) - 1)))
