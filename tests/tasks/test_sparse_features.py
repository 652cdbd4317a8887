"""Texts as hashed n-grams: units, spaced and unspaced scripts, pairs, and the same features whatever else is hashed."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.tasks.sparse_features import FeatureHasher, SparseRows, max_ngram, units


def row(rows: SparseRows, number: int) -> dict[int, float]:
    part = slice(rows.starts[number], rows.starts[number + 1])
    return dict(zip(rows.ids[part].tolist(), rows.counts[part].tolist(), strict=True))


def features(hasher: FeatureHasher, text: str) -> set[int]:
    return set(row(hasher.texts([text]), 0))


def test_units() -> None:
    assert units("Don't STOP, 2 go") == ["don", "'", "t", "stop", ",", "2", "go"]
    assert units("我爱NLP。") == ["我", "爱", "nlp", "。"]
    assert units("ไทย") == ["ไ", "ท", "ย"]
    assert units(["New", "York"]) == units("new york")
    assert units(" \n") == []


def test_ngrams_of_spaced_and_unspaced_scripts() -> None:
    assert [max_ngram(texts) for texts in (["a good film"], ["一部好电影"], ["好电影 film"], [""], [])] == [2, 3, 3, 2, 2]
    words, characters = FeatureHasher(2), FeatureHasher(3)
    assert len(features(words, "not very good")) == 3 + 2
    assert len(features(characters, "好电影")) == 3 + 2 + 1
    assert features(words, "very good") < features(words, "not very good")
    assert features(words, "good very") != features(words, "very good")
    assert features(characters, "电影") < features(characters, "好电影") and not features(words, "")
    assert row(words.texts(["good good bad"]), 0)[next(iter(features(words, "good")))] == 2


def test_pairs_mark_whose_ngrams_they_are() -> None:
    hasher = FeatureHasher(2)
    rows = hasher.pairs([("a dog", "a cat"), ("a cat", "a dog"), ("a dog", "a dog"), ("", "")])
    first, turned, same, empty = (set(row(rows, number)) for number in range(4))
    assert first != turned and same not in (first, turned)
    assert not first & features(hasher, "a dog cat")  # not those of single texts
    overlap = len(hasher.overlap("a", "a"))
    assert [len(each) - overlap for each in (first, turned, same, empty)] == [5, 5, 3, 0]
    assert hasher.overlap("a dog", "a dog").tolist() == pytest.approx([1.0] * 7 + [0.0])
    assert hasher.overlap("a dog", "cats").tolist()[:6] == [0.0] * 6
    assert np.isfinite(hasher.overlap("", "")).all()


def test_a_text_has_the_same_features_in_any_batch() -> None:
    texts = ["A good film.", "", "bad", "好 film", "bad"]
    together, apart = FeatureHasher(2).texts(texts), FeatureHasher(2)
    pairs = [(text, texts[0]) for text in texts]
    several = FeatureHasher(2).pairs(pairs)
    for number in reversed(range(len(texts))):
        assert row(together, number) == row(apart.texts([texts[number]]), 0)
        assert row(several, number) == row(apart.pairs([pairs[number]]), 0)
    taken = together.take(np.array([3, 1, 0]))
    assert [row(taken, number) for number in range(3)] == [row(together, number) for number in (3, 1, 0)]
    assert len(FeatureHasher(2).texts([])) == 0
