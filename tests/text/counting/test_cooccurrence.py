"""Pairs of neighbours, against a count by two plain loops."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import UsageError
from polyseme.text.counting import cooccurrence
from polyseme.text.counting.cooccurrence import count_cooccurrences, frequent_types, subsampling_probabilities
from polyseme.text.shards.shards import Shards

TYPES = ["<S>", "</S>", "<UNK>", "a", "b", "c", "d"]


def shards(sentences: list[list[int]]) -> Shards:
    words = np.array([word for sentence in sentences for word in sentence], dtype=np.uint32)
    offsets = np.cumsum([0, *map(len, sentences)]).astype(np.int64)
    counts = np.bincount(words, minlength=len(TYPES)).astype(np.int64)
    return Shards(words, offsets, counts, fingerprint="f", types=TYPES)


def plain(sentences: list[list[int]], places: list[int], window: int) -> dict[tuple[int, int], float]:
    """X[i, j] for every ordered pair, as the paper has it."""
    table: dict[tuple[int, int], float] = defaultdict(float)
    for sentence in sentences:
        known = [places.index(word) for word in sentence if word in places]
        for here, word in enumerate(known):
            for there, other in enumerate(known):
                if here != there and abs(here - there) <= window:
                    table[word, other] += 1 / abs(here - there)
    return table


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(st.integers(3, 6), min_size=1, max_size=9), min_size=1, max_size=8),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from([1, 5, 1 << 20]),
)
def test_as_two_loops_count(sentences: list[list[int]], window: int, least: int, block: int) -> None:
    data = shards(sentences)
    places = frequent_types(data, least)
    if not len(places):
        return
    before, cooccurrence._BLOCK = cooccurrence._BLOCK, block
    try:
        found = count_cooccurrences(data, places, window)
    finally:
        cooccurrence._BLOCK = before
    expected = plain(sentences, places.tolist(), window)
    assert (found.first <= found.second).all() and len(found) == len({(min(pair), max(pair)) for pair in expected})
    for one, two, count in zip(found.first.tolist(), found.second.tolist(), found.counts.tolist(), strict=True):
        assert count == pytest.approx(expected[one, two], rel=1e-6) == pytest.approx(expected[two, one], rel=1e-6)


def test_the_vocabulary() -> None:
    data = shards([[4, 4, 4, 3, 3, 5, 2, 2, 2, 2]])
    assert frequent_types(data, 2).tolist() == [2, 4, 3]  # a mark that stands in the text is a word of it
    assert frequent_types(data, 1, 2).tolist() == [2, 4]
    with pytest.raises(UsageError, match="min_count=0 is too small"):
        frequent_types(data, 0)
    with pytest.raises(UsageError, match="window=0 is out of range; for 3 words"):
        count_cooccurrences(data, frequent_types(data, 2), 0)


def test_words_are_told() -> None:
    told: list[int] = []
    count_cooccurrences(shards([[3, 4], [5]]), np.array([3, 4]), 2, told.append)
    assert sum(told) == 3


def test_frequent_words_are_passed_over_before_pairs_are_counted() -> None:
    source = np.random.default_rng(1)
    sentences = [source.choice([3, 4, 5], size=12, p=[0.9, 0.08, 0.02]).tolist() for _ in range(400)]
    data = shards(sentences)
    places = frequent_types(data, 1)
    kept = subsampling_probabilities(data.counts[places], 0.05)
    assert kept.tolist() == sorted(kept.tolist()) and kept[0] < 0.3 and kept[-1] == 1
    found = count_cooccurrences(data, places, 3, kept=kept, seed=7)
    chances = dict(zip(places.tolist(), kept.tolist(), strict=True))
    drawn = iter(np.random.default_rng(7).random(12 * 400).tolist())
    left = [[word for word in sentence if next(drawn) < chances[word]] for sentence in sentences]
    assert 0.2 < sum(map(len, left)) / 4800 < 0.5
    expected = count_cooccurrences(shards(left), places, 3)  # the same as of a text without them
    for name in ("first", "second", "counts"):
        assert (getattr(found, name) == getattr(expected, name)).all()
    assert (
        len(count_cooccurrences(data, places, 3, kept=kept, seed=8).counts)
        and (count_cooccurrences(data, places, 3, kept=np.ones(3)).counts == count_cooccurrences(data, places, 3).counts).all()
    )
