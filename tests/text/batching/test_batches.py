"""Batches: every sentence once, within the bounds, longest first."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import UsageError
from polyseme.text.batching.batches import batch_by_words, batch_in_order


@settings(deadline=None)
@given(st.lists(st.integers(0, 60)), st.integers(1, 100), st.integers(1, 8))
def test_by_words(lengths: list[int], words: int, rows: int) -> None:
    batches = [batch.tolist() for batch in batch_by_words(lengths, words=words, batch_size=rows)]
    taken = [position for batch in batches for position in batch]
    assert taken == sorted(range(len(lengths)), key=lambda position: -lengths[position])  # sorted is stable
    for batch in batches:
        padded = len(batch) * max(lengths[position] for position in batch)
        assert 1 <= len(batch) <= rows
        assert padded <= words or len(batch) == 1


def test_by_words_by_hand() -> None:
    batches = batch_by_words([3, 9, 3, 1, 4], words=8, batch_size=2)
    assert [batch.tolist() for batch in batches] == [[1], [4, 0], [2, 3]]
    assert batch_by_words([]) == []
    assert [len(batch) for batch in batch_by_words([1] * 300)] == [128, 128, 44]


def test_long_sentences_share_a_batch() -> None:
    lengths = [300] * 5 + [90] * 30 + [10] * 100
    batches = [batch.tolist() for batch in batch_by_words(lengths, words=400, least=16)]
    sizes = [(len(batch), max(lengths[row] for row in batch)) for batch in batches]
    long = [(5, 300), (16, 90), (14, 90)]  # up to 1,600 words for at most 16 sentences
    assert sizes == [*long, (40, 10), (40, 10), (20, 10)]  # short ones are limited as before
    one_long = batch_by_words([400] + [2] * 60, words=800, least=32)
    assert [len(batch) for batch in one_long] == [2, 59]  # and do not fill the batch of a long one


def test_in_order() -> None:
    assert [batch.tolist() for batch in batch_in_order(7, 3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert batch_in_order(0, 3) == []


def test_empty_batches_are_refused() -> None:
    with pytest.raises(UsageError, match="batch_size=0 is too small"):
        batch_in_order(3, 0)
    with pytest.raises(UsageError, match="both must be 1 or more"):
        batch_by_words([1], words=0)
    with pytest.raises(UsageError, match="both must be 1 or more"):
        batch_by_words([1], batch_size=0)
