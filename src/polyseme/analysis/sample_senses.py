"""Whether a model distinguishes the senses of the sample words: the nearest other occurrence of a word has the same sense, and
so has the nearest centroid, the mean of the other occurrences of a sense.

Every sentence is compared with all others, so nothing is trained. A static model (layer 0) has one vector for all occurrences
of a word and can only guess.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.samples import Sample, position_of
from polyseme.analysis.search import normalised
from polyseme.analysis.span_vectors import WITH_WINDOW, span_vectors
from polyseme.analysis.substitute_vectors import SubstituteVectors, substitute_vectors
from polyseme.analysis.surroundings import with_surroundings
from polyseme.base.errors import PolysemeError
from polyseme.encoders.base import Encoder

SHARE, CENTROID = "same sense", "nearest centroid"
WITH_SUBSTITUTES = "layer {} with window and substitutes"


def probe_samples(encoder: Encoder, samples: Sequence[Sample]) -> ProbeResult:
    """Return the share of sentences whose nearest occurrence of the same word, or whose nearest centroid, has the same sense.

    For each layer, for the top one with the words around the word, and with its substitutes, too, as `neighbours` compares
    them; the facts hold the share of each word by the last.
    """
    found = [(sample, position) for sample in samples if (position := position_of(sample, encoder)) is not None]
    if not found:
        raise PolysemeError("the model splits none of the sample words as one word, so it has no vectors for them")
    sentences = [encoder.words(sample.sentence) for sample, _ in found]
    places = [_with_both_sides(position, len(words)) for words, (_, position) in zip(sentences, found, strict=True)]
    spans = [[range(place, place + 1) for place in each] for each in places]
    vectors = span_vectors(encoder, sentences, spans, around=True)
    columns = [0, *itertools.accumulate(map(len, spans))]
    stack = vectors[:, columns[:-1]]
    views = {f"layer {number}": layer for number, layer in enumerate(stack[:-1])}
    views[WITH_WINDOW.format(encoder.layers - 1)] = with_window = with_surroundings(stack[-2], stack[-1])
    if (substitutes := substitute_vectors(encoder)) is not None:
        states = _states_around(places, vectors[-2], substitutes)
        views[WITH_SUBSTITUTES.format(encoder.layers - 1)] = np.concatenate([with_window, substitutes(states)], axis=1)
    by_word: dict[str, list[int]] = defaultdict(list)
    for number, (sample, _) in enumerate(found):
        by_word[sample.word].append(number)
    senses = np.array([sample.sense for sample, _ in found])
    shares = {
        word: np.array([_shares(view[rows], senses[rows]) for view in views.values()])
        for word, rows in by_word.items()
        if len(rows) > 1
    }
    counts = np.array([len(by_word[word]) for word in shares])
    over_all = np.tensordot(counts, np.stack(list(shares.values())), 1) / counts.sum()  # (views, 2)
    guessed = {word: float(_guess(senses[by_word[word]])) for word in shares}
    guess = float(counts @ np.array(list(guessed.values())) / counts.sum())
    chance = 1.96 * math.sqrt(guess * (1 - guess) / counts.sum())  # half of a 95 % interval
    is_guess = over_all[:, 0].max() <= guess + chance
    return ProbeResult(
        title=f"senses of {len(shares)} words in {len(found)} sentences",
        measures=(SHARE, CENTROID),
        rows={
            name: dict(zip((SHARE, CENTROID), each.tolist(), strict=True)) for name, each in zip(views, over_all, strict=True)
        },
        baselines={"a guess": {SHARE: guess}},
        facts={
            "split_differently": len(samples) - len(found),
            **{word: round(float(each[-1, 0]), 3) for word, each in shares.items()},
        },
        note="no row is clearly above a guess: this model does not tell senses apart" if is_guess else "",
    )


def _with_both_sides(position: int, words: int) -> list[int]:
    """Return the place of a word, and those of the words beside it, from which its substitutes are guessed."""
    return [place for place in (position, position - 1, position + 1) if 0 <= place < words]


def _states_around(
    places: Sequence[Sequence[int]], top: NDArray[np.floating], substitutes: SubstituteVectors
) -> NDArray[np.float32]:
    """Return the states around the first of each list of places; `top`: the vectors of all places of all lists."""
    rows, states = iter(top), []
    for each in places:
        vectors = {place: next(rows) for place in each}
        states.append(substitutes.states(vectors.get(each[0] - 1), vectors.get(each[0] + 1)))
    return np.stack(states)


def _shares(vectors: NDArray[np.floating], senses: NDArray[np.str_]) -> tuple[float, float]:
    """Return both shares over the occurrences of one word (occurrences, dim)."""
    units = normalised(vectors)
    same = senses[:, None] == senses[None, :]
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2.0)
    kinds = np.unique(senses)
    member = (senses[:, None] == kinds).astype(units.dtype)  # (occurrences, senses)
    sums = (member.T @ units)[None] - member[..., None] * units[:, None]  # without the occurrence itself
    lengths = np.linalg.norm(sums, axis=2)
    to_centroids = np.where(lengths > 1e-6, (sums * units[:, None]).sum(2) / np.maximum(lengths, 1e-6), -2.0)
    return _nearest(cosines, same), _nearest(to_centroids, member > 0)


def _nearest(cosines: NDArray[np.floating], right: NDArray[np.bool_]) -> float:
    """Return how often the nearest of each row is a right one; equally near ones share the count."""
    cosines = np.round(cosines, 6)
    nearest = cosines == cosines.max(1, keepdims=True)
    return float(((nearest & right).sum(1) / nearest.sum(1)).mean())


def _guess(senses: NDArray[np.str_]) -> float:
    """Return the expected share of a random other occurrence."""
    same = (senses[:, None] == senses[None, :]).sum(1) - 1
    return float(np.mean(same / (len(senses) - 1)))
