"""gensim: static and sense vectors as `KeyedVectors`, their files, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gensim", reason="needs gensim (extra vectors)")

from gensim.models import KeyedVectors

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.integrations.gensim import from_keyed_vectors, keyed_vectors
from tests.integrations.samples import SENTENCES


def test_static_vectors_there_and_back(folder: Path, model: Elmo, tmp_path: Path) -> None:
    vectors = keyed_vectors(folder)
    np.testing.assert_allclose(vectors["bank"], model.embed([["bank"]], layers=0)[0][0], atol=1e-6)
    assert "<S>" not in vectors.key_to_index
    vectors.save_word2vec_format(tmp_path / "vectors.bin", binary=True)
    again = KeyedVectors.load_word2vec_format(tmp_path / "vectors.bin", binary=True)
    np.testing.assert_array_equal(again["bank"], vectors["bank"])
    ours = from_keyed_vectors(vectors)
    np.testing.assert_allclose(ours.embed([["bank"]], layers="top")[0][0], vectors["bank"], atol=1e-6)
    ours.save_pretrained(tmp_path / "table")
    loaded = polyseme.load(tmp_path / "table").embed([["bank"]], layers="top")[0][0]
    np.testing.assert_allclose(loaded, vectors["bank"], atol=1e-6)


def test_sense_vectors_are_centres_of_uses(folder: Path, model: Elmo) -> None:
    sentences = [each.split() for each in SENTENCES]
    senses = keyed_vectors(folder, sentences, ["bank", "cat"], groups=2, layer="top")
    assert sorted(senses.index_to_key) == ["bank#1", "bank#2", "cat#1"]
    uses = [model.embed([sentence], layers="top")[0][sentence.index("bank")] for sentence in sentences[:2]]
    found = sorted([senses["bank#1"].tolist(), senses["bank#2"].tolist()])
    np.testing.assert_allclose(found, sorted(each.tolist() for each in uses), atol=1e-5)
    one = keyed_vectors(folder, sentences, ["BANK"], groups=1, layer="top")
    np.testing.assert_allclose(one["bank#1"], np.mean(uses, axis=0), atol=1e-5)


def test_wrong_calls_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="both"):
        keyed_vectors(folder, SENTENCES)
    with pytest.raises(PolysemeError, match="none of the words"):
        keyed_vectors(folder, SENTENCES, ["zebra"])
    with pytest.raises(UsageError, match="words is the string 'bank'; expected a list"):
        keyed_vectors(folder, SENTENCES, "bank")
    with pytest.raises(UsageError, match="sentences is the string"):
        keyed_vectors(folder, SENTENCES[0], ["bank"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"words is \[\]; expected a list of one word or more"):
        keyed_vectors(folder, SENTENCES, [])
    with pytest.raises(UsageError, match=r"no option group .did you mean 'groups'"):
        keyed_vectors(folder, SENTENCES, ["bank"], group=2)
    with pytest.raises(UsageError, match=r"expected KeyedVectors, got str; a Word2Vec or FastText has them as model\.wv"):
        from_keyed_vectors("vectors.txt")
