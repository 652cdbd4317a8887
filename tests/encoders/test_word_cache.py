from __future__ import annotations

import random

import torch

from polyseme.encoders.word_cache import WordCache
from tests.encoders.small import elmo


class Vectors:
    """Counts what it is asked for; a word's vector is its length and its first letter."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, words: list[str]) -> torch.Tensor:
        self.asked += words
        return expected(words)


def expected(words: list[str]) -> torch.Tensor:
    return torch.tensor([[float(len(word)), float(ord(word[0]))] for word in words])


def test_each_word_is_computed_once() -> None:
    cache, vectors = WordCache(), Vectors()
    for words in (["a", "bb", "a"], ["bb", "ccc"]):
        torch.testing.assert_close(cache.lookup(words, ((1, 1),), vectors), expected(words))
    assert vectors.asked == ["a", "bb", "ccc"]


def test_new_weights_empty_it() -> None:
    cache, vectors = WordCache(), Vectors()
    cache.lookup(["a"], ((1, 1),), vectors)
    cache.lookup(["a"], ((1, 2),), vectors)
    assert vectors.asked == ["a", "a"]


def test_least_recent_words_go_first() -> None:
    cache, vectors = WordCache(limit=4), Vectors()
    for words in (["a", "b"], ["c"], ["a"], ["d", "e"]):
        cache.lookup(words, ((1, 1),), vectors)
    assert len(cache) == 4
    vectors.asked.clear()
    cache.lookup(["a", "d"], ((1, 1),), vectors)
    assert vectors.asked == []
    cache.lookup(["b"], ((1, 1),), vectors)
    assert vectors.asked == ["b"]


def test_more_words_than_it_may_hold() -> None:
    cache, vectors = WordCache(limit=3), Vectors()
    words = ["a", "bb", "ccc", "dddd", "a"]
    torch.testing.assert_close(cache.lookup(words, ((1, 1),), vectors), expected(words))
    assert len(cache) <= 3


def test_right_under_any_pressure() -> None:
    source, cache, vectors = random.Random(0), WordCache(limit=12), Vectors()
    names = [chr(97 + i) * (i % 5 + 1) for i in range(26)]
    for _ in range(500):
        words = source.choices(names, k=source.randint(1, 9))
        torch.testing.assert_close(cache.lookup(words, ((1, 1),), vectors), expected(words))
        assert len(cache) <= 12


def test_it_is_filled_in_inference_mode_and_outside() -> None:
    """`embed` runs in inference mode, `read` in the caller's: the table has room for its word."""
    cache, vectors = WordCache(), Vectors()
    for words, inference in ((["a"], True), (["bb"], True), (["ccc"], True), (["dd"], False), (["e", "a"], True)):
        with torch.inference_mode(inference):
            torch.testing.assert_close(cache.lookup(words, ((1, 1),), vectors), expected(words))
    assert vectors.asked == ["a", "bb", "ccc", "dd", "e"]


def test_a_model_reads_after_it_embedded() -> None:
    model = elmo()
    fresh, _ = elmo().read([["zebra"]], start=None)
    for sentence in (["a", "bank"], ["river"]):
        model.embed([sentence])
    torch.testing.assert_close(model.read([["zebra"]], start=None)[0], fresh)
