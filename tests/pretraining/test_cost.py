"""Every method leaves one small file that tells what its training cost; a model that is not finished has none."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import polyseme
from polyseme.base.run import Run
from polyseme.pretraining.cost import Cost, read_cost, write_cost
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.text.corpus import Corpus
from polyseme.training.config import TrainConfig

LINES = "the cat sat on the mat .\na dog saw it .\n"
SHORT = TrainConfig(steps=2)
Fit = Callable[[Corpus, Path], Any]


def ngram(text: Corpus, out: Path) -> None:
    from polyseme.pretraining.ngram_config import NgramPretraining

    NgramPretraining(order=2).fit(text, Run(), out)


def vectors(name: str, **options: Any) -> Fit:
    def fit(text: Corpus, out: Path) -> None:
        from polyseme.pretraining import glove, word2vec

        if name != "GlovePretraining":
            pytest.importorskip("gensim")
        config = getattr(glove if name == "GlovePretraining" else word2vec, name)
        config(dim=4, min_count=1, epochs=3, **options).fit(text, Run(), out)

    return fit


def nnlm(text: Corpus, out: Path) -> None:
    from polyseme.pretraining.nnlm_config import NnlmPretraining

    NnlmPretraining(order=3, dim=4, hidden_size=5, train=SHORT).fit(text, Run(), out)


def ulmfit(text: Corpus, out: Path) -> None:
    from polyseme.pretraining.ulmfit_config import UlmfitPretraining

    UlmfitPretraining(dim=4, hidden_size=5, layers=2, train=SHORT).fit(text, Run(), out)


def elmo(text: Corpus, out: Path) -> None:
    ElmoPretraining(size="tiny", vocabulary_size=20, train=SHORT).fit(text, Run(), out)


def pieces(kind: str) -> Fit:
    def fit(text: Corpus, out: Path) -> None:
        pytest.importorskip("transformers")
        from polyseme.pretraining.subword_config import BertPretraining, GptPretraining

        config = BertPretraining if kind == "bert" else GptPretraining
        config(vocabulary_size=280, max_length=16, batch_subwords=64, train=SHORT).fit(text, Run(), out)

    return fit


METHODS: dict[str, Fit] = {
    "ngram": ngram,
    "word2vec": vectors("Word2VecPretraining"),
    "fasttext": vectors("FastTextPretraining", buckets=9),
    "glove": vectors("GlovePretraining"),
    "nnlm": nnlm,
    "ulmfit": ulmfit,
    "elmo": elmo,
    "bert": pieces("bert"),
    "gpt": pieces("gpt"),
}


@pytest.fixture
def text(tmp_path: Path) -> Corpus:
    (tmp_path / "a.txt").write_text(LINES * 20, encoding="utf-8")
    return Corpus(tmp_path / "a.txt", splitter="whitespace", sentences="lines", workers=0)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_it(method: str, text: Corpus, tmp_path: Path) -> None:
    METHODS[method](text, tmp_path / "model")
    cost = read_cost(tmp_path / "model")
    assert cost is not None and cost.method == method and cost.text_words == 12 * 20 and cost.device == "cpu"
    assert cost.seconds > 0 and cost.words_per_second == pytest.approx(cost.words / cost.seconds)
    assert cost.parameters == polyseme.load(tmp_path / "model").info()["parameters"]
    passes = {"ngram": 1, "word2vec": 3, "fasttext": 3, "glove": 3}
    if method in passes:
        assert cost.words == passes[method] * cost.text_words and not cost.scores
    else:
        assert cost.words > 0 and any(value > 0 for value in cost.scores.values())


def test_a_model_that_changes_has_it_no_more(text: Corpus, tmp_path: Path) -> None:
    """What is saved anew is another model, of whose training nothing is known; a second call leaves the file as it is."""
    elmo(text, tmp_path / "model")
    path = tmp_path / "model" / "pretraining.json"
    values = json.loads(path.read_text()) | {"date": "2020-02-02"}
    path.write_text(json.dumps(values | {"from a newer version": 1}))
    elmo(text, tmp_path / "model")
    assert json.loads(path.read_text())["date"] == "2020-02-02"
    polyseme.load(tmp_path / "model").save_pretrained(tmp_path / "model")
    assert not path.exists() and read_cost(tmp_path / "model") is None


def test_side_by_side(tmp_path: Path) -> None:
    one = Cost(method="word2vec", seconds=2.0, words=10, text_words=5, parameters=3)
    other = dataclasses.replace(one, method="elmo", seconds=3.0, scores={"perplexity": 9.0})
    assert one.plus(other).device == "cpu"
    both = one.plus(dataclasses.replace(other, device="cuda"))
    assert both.device == both.plus(one).device == "cpu+cuda"
    assert (both.method, both.seconds, both.words, both.parameters, both.scores) == ("word2vec+elmo", 5.0, 20, 6, {})
    write_cost(tmp_path, other)
    assert read_cost(tmp_path) == other and dataclasses.replace(one, seconds=0.0).words_per_second is None
