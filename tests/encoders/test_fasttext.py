"""fastText: subwords as gensim hashes them, and unknown words made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.encoders.config import FastTextConfig
from polyseme.encoders.fasttext import FastTextTable, subword_rows
from polyseme.text.word_vectors import WordVectors

WORDS = ["the", "bank", "river"]
NUMBERS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
SUBWORDS = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)


def table(words: list[str] | None = None, **settings: object) -> FastTextTable:
    vectors = WordVectors(words or WORDS, NUMBERS.copy(), 3)
    return FastTextTable.from_parts(vectors, SUBWORDS.copy(), **settings)  # type: ignore[arg-type]


def test_the_published_hash() -> None:
    """FNV-1a of 'a' with 32 bits is e40c292c; of a byte above 127 the published program takes the sign along."""
    assert subword_rows("a", 1, 1, 1 << 32) == [0xE40C292C]
    signed = (2166136261 ^ 0xFFFFFFC3) * 16777619 % 2**32
    assert subword_rows("é", 1, 1, 1 << 32) == [(signed ^ 0xFFFFFFA9) * 16777619 % 2**32]
    assert subword_rows("", 3, 6, 10) == [] and len(subword_rows("ab", 3, 6, 10)) == 3


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), st.integers(1, 4), st.integers(0, 3))
def test_as_gensim_hashes(word: str, shortest: int, more: int) -> None:
    inner = pytest.importorskip("gensim.models.fasttext_inner", reason="gensim is the oracle here")
    expected = [inner.ft_hash_bytes(part) % 997 for part in inner.compute_ngrams_bytes(word, shortest, shortest + more)]
    assert subword_rows(word, shortest, shortest + more, 997) == expected


def test_unknown_words_are_made_of_subwords() -> None:
    model = table(min_n=3, max_n=4)
    expected = SUBWORDS[subword_rows("banks", 3, 4, 30)].mean(0)
    vectors, known = model.lookup(["bank", "banks", "Banks", "River"])
    assert known.all()
    np.testing.assert_array_equal(vectors[[0, 3]], NUMBERS[[1, 2]])
    np.testing.assert_allclose(vectors[1], expected, rtol=1e-6)
    np.testing.assert_array_equal(vectors[1], vectors[2])
    cased = table(["the", "Bank", "river"]).lookup(["bank", "BANK"])
    assert cased.vectors[0].tolist() != cased.vectors[1].tolist()


def test_words_similar_to_an_unknown_word() -> None:
    model = table(min_n=3, max_n=4)
    vectors = NUMBERS / np.linalg.norm(NUMBERS, axis=1, keepdims=True)
    own = model.lookup(["banks"]).vectors[0]
    expected = vectors @ own / np.linalg.norm(own)
    found = model.most_similar("banks", 10)
    assert [each.word for each in found] == [list(model.vocabulary)[row] for row in np.argsort(-expected)]
    np.testing.assert_allclose([each.cosine for each in found], np.sort(expected)[::-1], rtol=1e-5)
    with pytest.raises(UsageError, match="'at' is not among the 3 words"):
        table(min_n=5, max_n=6).most_similar("at")


def test_words_too_short_have_zeros() -> None:
    model = table(min_n=5, max_n=6)
    assert model.lookup(["at", "atom"]).vectors[0].tolist() == [0.0] * 4
    assert model.known(["at", "atom", "the"]).tolist() == [False, True, True]
    assert model.known([]).tolist() == []


def test_as_an_encoder(tmp_path: Path) -> None:
    model = table()
    texts = [["the", "oak", "bank"], [], ["oak", "elms"]]
    for words, found in zip(texts, model.embed(texts), strict=True):
        np.testing.assert_array_equal(found[0], model.lookup(words).vectors)
    model.unfreeze()
    model(model.prepare(texts)).states.sum().backward()
    assert model.table.weight.grad is not None and model.table.weight.grad[2].tolist() == [0.0] * 4
    model.save_pretrained(tmp_path / "m", precision="fp16")
    again = polyseme.load(tmp_path / "m")
    np.testing.assert_allclose(again.lookup(["oak"]).vectors, model.lookup(["oak"]).vectors, atol=2e-3)
    assert again.info()["unknown_words"] == "made of subwords of 3 to 6 letters" and again.info()["subword_rows"] == 30
    assert torch.equal(again.table.weight, model.table.weight.half().float())


def test_bad_configs() -> None:
    with pytest.raises(ConfigError, match="min_n is 3 and max_n is 2"):
        FastTextConfig(size=1, dim=2, buckets=3, min_n=3, max_n=2)
    with pytest.raises(ConfigError, match="buckets is 0"):
        FastTextConfig(size=1, dim=2, buckets=0)
    with pytest.raises(ConfigError, match="unknown is 'random'; allowed for fastText: 'zero'"):
        FastTextConfig(size=1, dim=2, buckets=3, unknown="random")
