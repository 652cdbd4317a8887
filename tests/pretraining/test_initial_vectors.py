"""Word tables that start from vectors: the right rows, the others like them, and runs that know their vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.word_vectors import WordVectors
from polyseme.training.config import TrainConfig

CONFIG = ElmoPretraining(
    size="tiny", input="words", vocabulary_size=500, batch_words=100, bptt=5, train=TrainConfig(epochs=1.0)
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    lines = [" ".join(f"w{number}" for number in range(begin, begin + 20)) for begin in range(0, 400, 20)]
    (tmp_path / "t.txt").write_text("\n".join(lines * 2), encoding="utf-8")
    return Corpus(tmp_path / "t.txt", splitter="whitespace", sentences="lines", workers=0)


def vectors(words: list[str], *, dim: int = 7, scale: float = 0.25, seed: int = 0) -> WordVectors:
    """Vectors for every second word."""
    found = words[::2]
    drawn = np.random.default_rng(seed).normal(scale=scale, size=(len(found), dim)).astype(np.float32)
    return WordVectors(found, drawn, total=1000)


@pytest.mark.parametrize("form", ["words", "both"])
def test_rows(corpus: Corpus, tmp_path: Path, form: str) -> None:
    shards = Shards.build(corpus, tmp_path / "shards")
    found = vectors(shards.types[:500])
    torch.manual_seed(0)
    model = build(shards, CONFIG.replace(input=form, word_dim=7), corpus, found)
    table = model.tokens.words.weight.detach().numpy()
    assert model.vocabulary is not None and table.shape == (len(model.vocabulary), 7)
    np.testing.assert_array_equal(table[::2], found.vectors)
    assert table[1::2].std() == pytest.approx(found.vectors.std(), rel=0.1) and abs(table[1::2].mean()) < 0.05
    assert model.tokens.words.weight.requires_grad


def test_tied_tables_too(corpus: Corpus, tmp_path: Path) -> None:
    shards = Shards.build(corpus, tmp_path / "shards")
    found = vectors(shards.types[:500], dim=16)
    model = build(shards, CONFIG.replace(tied=True, word_dim=16), corpus, found)
    assert model.output is not None
    np.testing.assert_array_equal(model.output.weight.detach().numpy()[::2], found.vectors)  # type: ignore[union-attr]


def test_a_run_knows_its_vectors(corpus: Corpus, tmp_path: Path) -> None:
    asked: list[list[str]] = []

    def find(words: list[str]) -> WordVectors:
        asked.append(words)
        return vectors(words)

    result = CONFIG.fit(corpus, Run(), tmp_path / "m", vectors=find)
    model = polyseme.load(tmp_path / "m")
    assert asked == [model.vocabulary.words] and model.config.words.dim == 7
    assert "| initial vectors | 202 of 403 words found |" in (tmp_path / "m" / "README.md").read_text()
    assert CONFIG.fit(corpus, Run(), tmp_path / "m", vectors=find).steps == result.steps
    with pytest.raises(PolysemeError, match="vectors changed"):
        CONFIG.fit(corpus, Run(), tmp_path / "m", vectors=lambda words: vectors(words, seed=1))
    with pytest.raises(PolysemeError, match="vectors"):
        CONFIG.replace(word_dim=7).fit(corpus, Run(), tmp_path / "m")


def test_mistakes(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="vectors needs a word table: give input words or both"):
        CONFIG.replace(input="characters").fit(corpus, Run(), tmp_path / "m", vectors=vectors)
    nothing = WordVectors([], np.empty((0, 7), dtype=np.float32), total=9)
    with pytest.raises(PolysemeError, match="none of the 403 words of the vocabulary is among the 9 vectors"):
        CONFIG.fit(corpus, Run(), tmp_path / "m", vectors=lambda words: nothing)
    with pytest.raises(PolysemeError, match="word_dim is 7"):
        CONFIG.replace(tied=True).fit(corpus, Run(), tmp_path / "m", vectors=vectors)
