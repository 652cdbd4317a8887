"""A TagLM is taught as an ELMo is, to the same numbers, and its runs are its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import polyseme
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.pretraining.cost import read_cost
from polyseme.pretraining.elmo_config import ElmoPretraining, TagLmPretraining
from polyseme.text.corpus import Corpus
from polyseme.training.config import TrainConfig

TAUGHT = {"size": "tiny", "vocabulary_size": 50, "batch_words": 100, "bptt": 5, "train": TrainConfig(steps=6)}


def test_taught_as_an_elmo_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat sat on the mat .\na dog saw it .\n" * 50, encoding="utf-8")
    corpus = Corpus(tmp_path / "a.txt", splitter="whitespace", sentences="lines", workers=0)
    results = [config.fit(corpus, Run(seed=1), tmp_path / kind) for kind, config in (
        ("elmo", ElmoPretraining(**TAUGHT)), ("taglm", TagLmPretraining(**TAUGHT)))]  # fmt: skip
    assert results[0].scores == results[1].scores
    model = polyseme.load(tmp_path / "taglm")
    assert (model.kind, model.layers, polyseme.load(tmp_path / "elmo").layers) == ("taglm", 1, 3)
    assert model.embed(["the cat"])[0].shape == (1, 2, model.dim) and model.perplexity(["the cat sat"]).mean > 1
    cost = read_cost(tmp_path / "taglm")
    assert cost is not None and (cost.method, cost.words, cost.scores) == ("taglm", results[1].words, results[1].scores)
    longer = {**TAUGHT, "train": TrainConfig(steps=8)}
    for out, other, config in (("taglm", "elmo", ElmoPretraining(**longer)), ("elmo", "taglm", TagLmPretraining(**longer))):
        told = rf"another kind of run \({out}, not {other}\): choose another folder"
        with pytest.raises(PolysemeError, match=told):
            config.fit(corpus, Run(seed=1), tmp_path / out, accept_changes=True)
        assert polyseme.load(tmp_path / out).kind == out
