"""Sense vectors: groups of uses, their means, and files that other readers understand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.analysis.samples import samples
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.base import Encoder
from polyseme.formats.word_vectors import read_vectors

BANK = [sample for sample in samples("en") if sample.word == "bank"]


@pytest.fixture(scope="module")
def model() -> Encoder:
    return polyseme.load("en")


@pytest.fixture(scope="module")
def texts(model: Encoder) -> list[list[str]]:
    return [model.words(sample.sentence) for sample in BANK]


@pytest.fixture(scope="module")
def uses(model: Encoder, texts: list[list[str]]) -> np.ndarray:
    """The top vectors of all uses of "bank"."""
    arrays = model.embed(texts, layers="top")
    found = [array[at] for text, array in zip(texts, arrays, strict=True) for at, w in enumerate(text) if w.lower() == "bank"]
    return np.stack(found)


def test_a_sense_is_the_mean_of_its_uses(model: Encoder, texts: list[list[str]], uses: np.ndarray) -> None:
    one = polyseme.senses(["bank"], model=model, corpus=texts, groups=1).senses
    assert [each.name for each in one] == ["bank#1"]
    np.testing.assert_allclose(one[0].vector, uses.mean(0), atol=1e-5)
    two = polyseme.senses(["bank"], model=model, corpus=texts, groups=2).senses
    assert [each.name for each in two] == ["bank#1", "bank#2"]
    assert two[0].uses >= two[1].uses
    assert sum(each.uses for each in two) == len(uses)
    np.testing.assert_allclose(sum(each.uses * each.vector for each in two), uses.sum(0), atol=1e-4)


def test_the_senses_are_those_of_the_samples(model: Encoder, texts: list[list[str]], uses: np.ndarray) -> None:
    """The uses that are nearest to a centroid are of one sense, for most uses."""
    found = polyseme.senses(["Bank"], model=model, corpus=texts, groups=2).word_vectors()
    assert found.words == ["bank#1", "bank#2"]
    nearest = (uses @ (found.vectors / np.linalg.norm(found.vectors, axis=1, keepdims=True)).T).argmax(1)
    kinds = np.unique([sample.sense for sample in BANK], return_inverse=True)[1]
    assert len(kinds) == len(nearest)
    right = np.mean(nearest == kinds)
    assert max(right, 1 - right) >= 0.8


@pytest.mark.parametrize("suffix", [".txt", ".vec", ".bin", ".glove"])
def test_files_that_readers_of_word_vectors_understand(
    model: Encoder, texts: list[list[str]], suffix: str, tmp_path: Path
) -> None:
    out = tmp_path / f"senses{suffix}"
    made = polyseme.senses(["bank"], model=model, corpus=texts, groups=2, out=out)
    assert str(out) in str(made)
    first = out.read_bytes().split(b"\n")[0]
    assert first.startswith(b"bank#1 ") if suffix == ".glove" else first == f"2 {model.dim}".encode()
    expected = made.word_vectors()
    back = read_vectors(out)
    assert back.words == ["bank#1", "bank#2"]
    np.testing.assert_array_equal(back.vectors, expected.vectors)
    table = polyseme.load(out)
    assert table.embed([["bank#1"]])[0].shape == (1, 1, model.dim)


@pytest.mark.slow  # gensim takes seconds to import
@pytest.mark.parametrize("suffix", [".txt", ".bin", ".glove"])
def test_gensim_reads_the_files(model: Encoder, texts: list[list[str]], suffix: str, tmp_path: Path) -> None:
    gensim = pytest.importorskip("gensim.models", reason="gensim is not installed")
    out = tmp_path / f"senses{suffix}"
    made = polyseme.senses(["bank"], model=model, corpus=texts, groups=2, out=out).word_vectors()
    form = {"binary": suffix == ".bin", "no_header": suffix == ".glove"}
    theirs = gensim.KeyedVectors.load_word2vec_format(str(out), **form)
    np.testing.assert_allclose(theirs["bank#2"], made.vectors[1], rtol=1e-6)


def test_all_words_with_enough_uses(model: Encoder) -> None:
    found = polyseme.senses(
        model=model, corpus=[["A", "b", "."], ["a", "b", "."], ["A", "c", "."], ["A", "c", "."]], min_uses=3, groups=1
    )
    assert [(each.name, each.uses) for each in found.senses] == [("a#1", 3)]
    with pytest.raises(PolysemeError, match="no word of the text has 9 uses"):
        polyseme.senses(model=model, corpus=[["a", "b"]], min_uses=9)


def test_uses_that_are_not_compared_and_small_groups_are_named(
    model: Encoder, texts: list[list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    polyseme.senses(["bank", "the"], model=model, corpus=texts, groups=1)
    assert caplog.messages == []
    assert polyseme.senses(["bank"], model=model, corpus=texts * 2, groups=1).senses[0].uses == len(texts)
    assert caplog.messages == [f"of equal sentences one is used: {len(texts)} repeated ones left out"]
    caplog.clear()
    found = polyseme.senses(["bank"], model=model, corpus=texts, groups=1, max_uses=3)
    said = f"only the first 3 uses of bank ({len(texts)}) are compared: raise max_uses"
    assert caplog.messages == [said] and found.senses[0].uses == 3 and "may be chance" not in str(found)
    small = polyseme.senses(["bank"], model=model, corpus=texts[:3], groups=2)
    told = "fewer than 50 uses (bank: 3) tell little of senses: groups may be chance; give more text"
    assert small.senses[1].uses == 1 and told in str(small)
    assert str(small).split()[:5] == ["sense", "uses", "around", "it", "bank#1"]
    one = polyseme.senses(["bank"], model=model, corpus=texts[:2], groups=1)
    assert "groups of 2 uses or fewer (bank#1) may be chance: give more text" in str(one)


def test_mistakes(model: Encoder, texts: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the suffix selects the form"):
        polyseme.senses(["bank"], model=model, corpus=texts, out=tmp_path / "senses.npz")
    part = r"none of the words ba \(ba is only a part of bank \(\d+\), .*; with spaces around it, it is a word\): give"
    with pytest.raises(PolysemeError, match=part):
        polyseme.senses(["ba"], model=model, corpus=texts)
    with pytest.raises(PolysemeError, match="the text has none of the words zebra: give"):
        polyseme.senses(["zebra"], model=model, corpus=texts)
    vectors = tmp_path / "v.txt"
    vectors.write_text("2 2\na 1 2\nb 2 1\n")
    with pytest.raises(UsageError, match="has one vector per word"):
        polyseme.senses(["a"], model=str(vectors), corpus=texts)


def test_a_sense_whose_uses_share_no_word_has_an_example(model: Encoder) -> None:
    texts = [text.split() for text in ("The old bank closed its doors for ever last year .", "A bank in it .")]
    one, two = polyseme.senses(["bank"], model=model, corpus=texts, groups=2).senses
    assert {one.example, two.example} == {"The old bank closed its doors for ...", "A bank in it ."}
    without = one if one.example.startswith("A") else two
    assert without.label == [] and without.shown == "A bank in it ."  # function words label nothing
    assert "A bank in it ." in str(polyseme.senses(["bank"], model=model, corpus=texts, groups=2))


def test_the_largest_number_of_groups_is_named(model: Encoder, texts: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    groups = np.arange(len(texts)) % 8
    monkeypatch.setattr("polyseme.analysis.sense_vectors.clusters", lambda vectors, count: groups[: len(vectors)])
    found = str(polyseme.senses(["bank"], model=model, corpus=texts))
    assert "8 groups are the most that are tried (bank): groups N makes N" in found
    assert "the most that are tried" not in str(polyseme.senses(["bank"], model=model, corpus=texts, groups=8))
