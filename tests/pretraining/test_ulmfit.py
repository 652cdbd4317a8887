"""ElmoTraining an AWD-LSTM: the loss against the model's own answers, learning, and going on after a stop."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.run import Run
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.config import AwdDropout
from polyseme.pretraining.ulmfit import UlmfitObjective
from polyseme.pretraining.ulmfit_config import UlmfitPretraining, default_optim
from polyseme.pretraining.vocabulary_index import index_vocabulary
from polyseme.text.batching.bptt import BpttBatches, TokenStream
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import get_splitter
from polyseme.training.config import TrainConfig
from tests.pretraining.stopping import stopped_after

LINES = [f"the {a} sat on the {b} and saw a {a} ." for a in ("cat", "dog", "bird") for b in ("mat", "bank", "river")] * 4
READ = {"splitter": "whitespace", "sentences": "lines", "workers": 0}
NOTHING = AwdDropout().times(0)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return Corpus(tmp_path / "text.txt", **READ)  # type: ignore[arg-type]


def config(**changes: object) -> UlmfitPretraining:
    train = TrainConfig(epochs=40.0, optim=default_optim(learning_rate=1e-2, weight_decay=0.01))
    shares = AwdDropout().times(0.2)
    plain = UlmfitPretraining(dim=16, hidden_size=24, layers=2, dropout=shares, batch_size=4, bptt=12, train=train)
    return plain.replace(**changes)


def objective(corpus: Corpus, tmp_path: Path, **changes: object) -> tuple[UlmfitObjective, Shards]:
    torch.manual_seed(0)
    shards = Shards.build(corpus, tmp_path / "shards")
    words, ids = index_vocabulary(shards, vocabulary_size=None, min_count=1)
    method = config(dropout=NOTHING, **changes)
    vocabulary = Vocabulary(words, unknown="<unk>", begin="<s>", end="</s>")
    model = Ulmfit(method.encoder_config(len(vocabulary)), vocabulary=vocabulary, splitter=get_splitter("whitespace"))
    return UlmfitObjective(model, ids, method), shards


def test_the_loss_is_that_of_the_text_read_on(corpus: Corpus, tmp_path: Path) -> None:
    learner, shards = objective(corpus, tmp_path, activation_regularization=0.0, temporal_regularization=0.0)
    batches = list(TokenStream(shards, range(len(shards))).in_order(1, 13))
    losses = [learner.loss(learner.prepare(batch)) for batch in batches]
    sizes = [batch.types.shape[1] - 1 for batch in batches]
    mean = sum(loss.total.item() * size for loss, size in zip(losses, sizes, strict=True)) / sum(sizes)
    said = learner.model.eval().perplexity(LINES, start="carry")
    assert said.predictions == sum(sizes) and np.exp(mean) == pytest.approx(said.mean, rel=1e-5)
    assert sum(loss.words for loss in losses) == shards.total
    assert learner.evaluate(batches)["perplexity"] == pytest.approx(said.mean, rel=1e-5)
    assert learner.loss(learner.prepare(batches[0])).components["activation"].item() == 0


def test_activations_cost(corpus: Corpus, tmp_path: Path) -> None:
    learner, shards = objective(corpus, tmp_path)
    loss = learner.loss(learner.prepare(next(iter(BpttBatches(shards, range(9), batch_size=2)))))
    assert loss.total.item() == pytest.approx((loss.components["prediction"] + loss.components["activation"]).item())
    assert loss.components["activation"].item() > 0


def test_the_state_is_carried_and_put_back(corpus: Corpus, tmp_path: Path) -> None:
    learner, shards = objective(corpus, tmp_path)
    first, second = (learner.prepare(b) for b in itertools.islice(BpttBatches(shards, range(30), batch_size=3, bptt=6), 2))
    assert learner.carried_state() == {}
    learner.loss(first)
    kept = {name: value.clone() for name, value in learner.carried_state().items()}
    assert sorted(kept) == ["cell0", "cell1", "hidden0", "hidden1"]
    value = learner.loss(second).total.item()
    assert learner.loss(second).total.item() != value
    learner.restore_carried_state(kept)
    assert learner.loss(second).total.item() == value
    learner.restore_carried_state({})
    assert learner.carried_state() == {} and learner.loss(second).total.item() != value


@pytest.mark.slow  # 40 epochs
def test_from_text_to_a_model(corpus: Corpus, tmp_path: Path) -> None:
    result = config(dev_size=1).fit(corpus, Run(seed=1), tmp_path / "m")
    assert result.ended == "budget" and result.scores["perplexity"] < 3
    model = polyseme.load(tmp_path / "m")
    assert isinstance(model, Ulmfit) and model.embed(["the cat"])[0].shape == (3, 2, 24)
    assert model.perplexity(LINES[-1:], start="carry").mean == pytest.approx(result.scores["perplexity"], rel=1e-4)
    assert model.score(["the cat sat on the mat"])[0] > model.score(["mat the on sat cat the"])[0] + 5
    assert "| lstm | 24/16 |" in (tmp_path / "m" / "README.md").read_text()


def test_from_right_to_left(corpus: Corpus, tmp_path: Path) -> None:
    method = config(backward=True, train=TrainConfig(steps=4))
    result = method.fit(corpus, Run(seed=1), tmp_path / "m")
    model = polyseme.load(tmp_path / "m")
    assert isinstance(model, Ulmfit) and model.config.backward and "| direction | backward |" in model.card
    assert result.scores["perplexity"] == pytest.approx(model.perplexity(LINES[-1:]).mean, rel=1e-4)  # one held-out line


def test_an_interrupted_run_resumes_to_the_same_model(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = config(train=TrainConfig(steps=16, eval_every=6))
    method.fit(corpus, Run(seed=3), tmp_path / "whole")
    for steps in (5, 8):
        with stopped_after(steps, UlmfitObjective, monkeypatch):
            assert method.fit(corpus, Run(seed=3), tmp_path / "parts").ended is None
    assert method.fit(corpus, Run(seed=3), tmp_path / "parts").steps == 16
    whole, parts = (polyseme.load(tmp_path / name).score(LINES[:3]) for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole, parts)


def test_rows_of_a_batch_by_text_and_machine() -> None:
    method, cpu, gpu = UlmfitPretraining(), Run(), Run(device=torch.device("cuda"))
    assert [method.resolved_batch_size(words, cpu) for words in (1_000, 1_000_000, 70_000_000)] == [7, 40, 40]
    assert [method.resolved_batch_size(words, gpu) for words in (1_000, 1_000_000, 8_000_000, 70_000_000)] == [7, 40, 80, 256]
    assert UlmfitPretraining(batch_size=12).resolved_batch_size(70_000_000, gpu) == 12


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layers": 0}, "layers is 0"),
        ({"batch_size": 0, "bptt": 0}, "batch_size is 0; allowed: 1 or more; bptt is 0"),
        ({"activation_regularization": -1.0}, "activation_regularization is -1.0"),
        ({"vocabulary_size": 2}, "vocabulary_size is 2; allowed: 4 or more"),
        (
            {"dropout_multiplier": 2.0},
            "dropout_multiplier is 2; allowed: below 2, because the largest dropout probability is 0.5",
        ),
    ],
)
def test_what_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        UlmfitPretraining(**options)  # type: ignore[arg-type]
