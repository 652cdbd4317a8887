"""ULMFiT's second stage: before and after, words that join, rates by layer, restarts."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.base.run import Run
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.encoders.vocabulary_extension import extend_vocabulary
from polyseme.pretraining.adapt import UlmfitAdaptationJob, adapt, type_ids
from polyseme.pretraining.ulmfit import UlmfitObjective
from polyseme.pretraining.ulmfit_config import UlmfitAdaptation, slanted_optim
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Loss
from polyseme.training.config import TrainConfig
from polyseme.training.optim import build_optimizer
from tests.encoders.test_sequence import ulmfit
from tests.training.compare import assert_same_run

LINES = ["the stent of the river .", "a dose to the bank .", "the ward of a bank ."] * 20
CONFIG = UlmfitAdaptation(
    dropout_multiplier=0.0, bptt=10, train=TrainConfig(steps=30, eval_every=10, optim=slanted_optim(0.02))
)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "domain.txt").write_text("\n".join(LINES), encoding="utf-8")
    return Corpus(tmp_path / "domain.txt", splitter="whitespace", sentences="lines", workers=0)


def test_new_words_begin_as_the_unknown_one() -> None:
    model, text = ulmfit(), ["the", "cat", "of", "."]
    before, unknown = model.log_probs([text])[0].forward, model.log_probs([["stent"]])[0].forward
    extend_vocabulary(model, ["stent", "ward", "dose"])
    assert len(model.vocabulary) == model.config.size == len(model.table.weight) == model.output.size
    assert model.output.weight is model.table.weight
    torch.testing.assert_close(model.log_probs([text])[0].forward, before, rtol=1e-5, atol=1e-6)
    found = model.log_probs([["stent"]])[0].forward
    assert found[0] == pytest.approx(unknown[0] - math.log(4), abs=1e-5)
    assert found[1] == pytest.approx(unknown[1], abs=1e-5)


def test_the_text_in_rows_of_the_table(corpus: Corpus, tmp_path: Path) -> None:
    model, shards = ulmfit(), Shards.build(corpus, tmp_path / "shards")
    ids, types = type_ids(shards, model), shards.types
    for word in ("the", "bank", "."):
        assert model.vocabulary[ids[types.index(word)]] == word
    assert {model.vocabulary[ids[types.index(word)]] for word in ("stent", "<S>", "</S>", "<UNK>")} == {"<unk>"}


def test_better_after_than_before(corpus: Corpus, tmp_path: Path) -> None:
    found = adapt(ulmfit(), corpus, tmp_path / "out", CONFIG, Run(seed=1))
    assert found.before is not None and found.better is True and sorted(found.added) == ["dose", "stent", "to", "ward"]
    model = polyseme.load(tmp_path / "out")
    assert isinstance(model, Ulmfit) and model.vocabulary.words[-4:] == found.added
    assert model.log_probs([LINES[0]])[0].known.all()
    assert polyseme.load(tmp_path / "out").embed(["the stent"])[0].shape[1] == 2
    with pytest.raises(UsageError, match="is the model to adapt"):
        adapt(model, corpus, tmp_path / "out", CONFIG, Run(seed=1))


def test_minutes_on_a_cpu(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.pretraining.adapt.FULL_ON_CPU", 5)
    job = UlmfitAdaptationJob(CONFIG, corpus, Run(device=torch.device("cpu")), tmp_path / "out")
    job.model, shards = ulmfit(), job.encode_text()
    assert job.resolve_defaults(shards).negatives is None
    job.method = CONFIG.replace(train=TrainConfig(minutes=0.5, optim=slanted_optim()))
    job.resolve(shards, *job.split(shards))
    assert job.method.negatives == 1024 and job.method.batch_size is not None
    assert job.method.dev_size == len(shards) // 10 < 50
    assert "stent" not in job.model.vocabulary


def test_layers_move_at_their_own_rates(corpus: Corpus, tmp_path: Path) -> None:
    model, shards = ulmfit(), Shards.build(corpus, tmp_path / "shards")
    objective = UlmfitObjective(model, type_ids(shards, model), CONFIG, layer_decay=CONFIG.layer_decay)
    groups = build_optimizer(CONFIG.train.optim, objective, objective.lr_multipliers()).param_groups
    scales = {name: group["lr_multiplier"] for group in groups for name in group["names"]}
    assert scales["model.lstm.layers.1.bias"] == scales["model.output.bias"] == 1.0
    assert scales["model.lstm.layers.0.input_weight"] == pytest.approx(1 / 2.6)
    assert scales["model.table.weight"] == pytest.approx(1 / 2.6**2)


def test_frozen_layer_groups_do_not_change(corpus: Corpus, tmp_path: Path) -> None:
    config = CONFIG.replace(freeze=("table", "layer1"), new_words=0, train=TrainConfig(steps=2, optim=slanted_optim()))
    start = ulmfit()
    first = start.lstm.stack()[0].input_weight.detach().clone()
    found = adapt(start, corpus, tmp_path / "out", config, Run(seed=1))
    assert found.added == [] and torch.equal(start.lstm.stack()[0].input_weight, first)
    with pytest.raises(UsageError, match="freeze leaves nothing to train"):
        adapt(ulmfit(), corpus, tmp_path / "none", config.replace(freeze=tuple(start.layer_groups())), Run())


def test_interrupted_and_resumed(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapt(ulmfit(), corpus, tmp_path / "whole", CONFIG, Run(seed=1))
    real, seen = UlmfitObjective.loss, [0]

    def stopping(self: UlmfitObjective, batch: Any) -> Loss:
        seen[0] += 1
        if seen[0] == 15:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, batch)

    monkeypatch.setattr(UlmfitObjective, "loss", stopping)
    part = adapt(ulmfit(), corpus, tmp_path / "out", CONFIG, Run(seed=1))
    assert part.ended is None and part.steps == 15
    again = adapt(ulmfit(), corpus, tmp_path / "out", CONFIG, Run(seed=1))
    assert again.ended == "budget"
    assert_same_run(tmp_path / "whole", tmp_path / "out")


def test_what_cannot_be() -> None:
    for settings, said in (
        ({"new_words": -1}, "new_words is -1"),
        ({"layer_decay": 0.5}, "layer_decay is 0.5; allowed: 1 or more"),
        ({"bptt": 0}, "bptt is 0"),
        ({"activation_regularization": -1.0}, "activation_regularization is -1.0"),
    ):
        with pytest.raises(ConfigError, match=said):
            UlmfitAdaptation(**settings)
