"""word2vec and fastText: the numbers are gensim's own, in every process, and a stopped run goes on to the same ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gensim", reason="word2vec and fastText are trained by gensim (extra vectors)")

import gensim.models

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import MissingExtraError, PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.fasttext import FastTextTable
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining import word2vec
from polyseme.pretraining.word2vec import Sentences
from polyseme.pretraining.word2vec_config import FastTextPretraining, Word2VecPretraining
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "saw", "bank", "river", "money", "naïve", "漢字", "lends", "swims"]
SETTINGS: dict[str, dict[str, Any]] = {
    "cbow": {},
    "skip-gram": {"architecture": "skip-gram", "window": 3},
    "hierarchical": {"hierarchical_softmax": True, "negative": 0},
    "both": {"architecture": "skip-gram", "hierarchical_softmax": True, "negative": 3, "sample": 0.0, "learning_rate": 0.05},
}
NAMES = {"hierarchical_softmax": "hs", "learning_rate": "alpha", "dim": "vector_size"}
"""Ours, and what gensim calls them."""


def text(sentences: int = 2500) -> list[list[str]]:
    """More words than gensim hands out at once, so that the learning rate falls on the way."""
    draw = np.random.default_rng(0)
    return [[WORDS[place] for place in draw.zipf(1.5, size=draw.integers(1, 12)) % 15] for _ in range(sentences)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in text()), encoding="utf-8")
    return Corpus(path, splitter="whitespace", sentences="lines")


def by_gensim(kind: type, settings: dict[str, Any], seed: int, **more: Any) -> Any:
    """gensim alone, as its users call it."""
    settings = {"dim": 12, "min_count": 2, "epochs": 3, **settings}
    skip_gram = settings.pop("architecture", "cbow") == "skip-gram"
    named = {NAMES.get(name, name): value for name, value in settings.items()}
    named["hs"] = int(named.get("hs", 0))
    return kind(text(), sg=int(skip_gram), workers=1, seed=seed, **named, **more)


settings_of_both = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "both")) for name in SETTINGS]
)


@settings_of_both
def test_word2vec_equals_gensim(tmp_path: Path, corpus: Corpus, name: str) -> None:
    config = Word2VecPretraining(dim=12, min_count=2, epochs=3, **SETTINGS[name])
    fitted = config.fit(corpus, Run(seed=7), tmp_path / "m")
    expected = by_gensim(gensim.models.Word2Vec, SETTINGS[name], 7).wv
    found = polyseme.load(tmp_path / "m")
    assert isinstance(found, WordVectorTable) and found.kind == "word2vec" and fitted.vocabulary_size == len(expected)
    assert list(found.vocabulary) == expected.index_to_key
    np.testing.assert_array_equal(found.table.weight.numpy(), expected.vectors)


@settings_of_both
def test_fasttext_equals_gensim(tmp_path: Path, corpus: Corpus, name: str) -> None:
    config = FastTextPretraining(dim=12, min_count=2, epochs=3, min_n=2, max_n=4, buckets=50, **SETTINGS[name])
    config.fit(corpus, Run(seed=7), tmp_path / "m")
    expected = by_gensim(gensim.models.FastText, SETTINGS[name], 7, min_n=2, max_n=4, bucket=50).wv
    found = polyseme.load(tmp_path / "m")
    assert isinstance(found, FastTextTable) and list(found.vocabulary) == expected.index_to_key
    np.testing.assert_array_equal(found.table.weight.numpy(), expected.vectors)
    np.testing.assert_array_equal(found.subwords.numpy(), expected.vectors_ngrams)
    others = ["banks", "x", "漢", "naïveté", "rivers'"]
    np.testing.assert_allclose(found.lookup(others).vectors, [expected[word] for word in others], rtol=0, atol=1e-7)


@pytest.mark.slow
def test_it_is_the_same_in_every_process(tmp_path: Path, corpus: Corpus) -> None:
    """Whatever the hashes of strings are there."""
    source = corpus.source.files[0].path
    code = (
        "import sys, hashlib, polyseme; from polyseme.base.run import Run\n"
        f"from {FastTextPretraining.__module__} import FastTextPretraining\n"
        f"text = polyseme.Corpus({str(source)!r}, splitter='whitespace', sentences='lines')\n"
        "FastTextPretraining(dim=4, epochs=2, buckets=9).fit(text, Run(seed=3), sys.argv[1])\n"
        "print(hashlib.sha256(polyseme.load(sys.argv[1]).table.weight.numpy().tobytes()).hexdigest())"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / seed)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", [Word2VecPretraining, pytest.param(FastTextPretraining, marks=pytest.mark.slow)])
def test_an_interrupted_run_resumes_to_the_same_numbers(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, kind: type[Word2VecPretraining]
) -> None:
    config = kind(dim=6, min_count=2, epochs=4, **({"buckets": 20} if kind is FastTextPretraining else {}))
    config.fit(corpus, Run(), tmp_path / "whole")
    keep = word2vec.EpochCheckpoints.write

    def stopping(self: word2vec.EpochCheckpoints, epoch: int, *rest: Any) -> None:
        keep(self, epoch, *rest)
        if epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(word2vec.EpochCheckpoints, "write", stopping)
    with pytest.raises(KeyboardInterrupt):
        config.fit(corpus, Run(), tmp_path / "cut")
    assert not (tmp_path / "cut" / "config.json").exists()
    monkeypatch.setattr(word2vec.EpochCheckpoints, "write", keep)
    for _ in range(2):  # the second time there is nothing left to do
        config.fit(corpus, Run(), tmp_path / "cut")
        one, two = (polyseme.load(tmp_path / name) for name in ("whole", "cut"))
        np.testing.assert_array_equal(one.table.weight.numpy(), two.table.weight.numpy())
    with pytest.raises(PolysemeError, match=r"other settings \(window: 5 in the run, 4 now\)"):
        config.replace(window=4).fit(corpus, Run(), tmp_path / "cut")


def test_sentences_come_whole_or_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    words, offsets = np.array([0, 1, 0, 1, 1, 0, 0, 1], dtype=np.uint32), np.array([0, 1, 6, 8])
    shards = Shards(words, offsets, np.array([4, 4]), fingerprint="f", types=["a", "b"])
    told: list[int] = []
    assert list(Sentences(shards, told.append)) == [["a"], list("babba"), list("ab")] and sum(told) == 8
    monkeypatch.setattr(word2vec, "MAX_SENTENCE", 2)
    monkeypatch.setattr(word2vec, "_BLOCK", 1)
    assert list(Sentences(shards)) == [["a"], list("ba"), list("bb"), ["a"], list("ab")]


def test_mistakes(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"negative=0 needs hierarchical_softmax=True: without both there is no loss"):
        Word2VecPretraining(negative=0)
    with pytest.raises(ConfigError, match="min_n is 4 and max_n is 3; min_n must not be larger"):
        FastTextPretraining(min_n=4, max_n=3)
    with pytest.raises(PolysemeError, match="no word of the text occurs 99999 times: give a lower min_count"):
        Word2VecPretraining(min_count=99_999).fit(corpus, Run(), tmp_path / "m")
    (tmp_path / "one.txt").write_text("the the the the\n" * 9)
    with pytest.raises(PolysemeError, match="hierarchical_softmax needs two: give a lower min_count"):
        alone = Word2VecPretraining(hierarchical_softmax=True, min_count=9)
        alone.fit(Corpus(tmp_path / "one.txt", workers=0), Run(), tmp_path / "m")
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(MissingExtraError, match=r"trained by gensim, .* not installed: pip install 'polyseme\[vectors\]'"):
        Word2VecPretraining().fit(corpus, Run(), tmp_path / "m")
