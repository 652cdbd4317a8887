"""Pre-training: the loss against the model's own probabilities, learning, and the published tiny training set."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.run import Run
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build
from polyseme.text.batching.stream import SentenceBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.splitting.unigram import UnigramSegmenter
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from tests.golden_path import golden

TEXT = "\n".join(f"the {a} sat on the {b} and saw a {a} ." for a in ("cat", "dog", "bird") for b in ("mat", "bank", "river"))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "text.txt").write_text(TEXT * 4, encoding="utf-8")
    return Corpus(tmp_path / "text.txt", splitter="whitespace", sentences="lines", workers=0)


def objective(corpus: Corpus, tmp_path: Path, **settings: object) -> tuple[ElmoObjective, SentenceBatches]:
    torch.manual_seed(0)
    shards = Shards.build(corpus, tmp_path / "shards")
    config = ElmoPretraining(size="tiny", dropout=0.0, **settings)  # type: ignore[arg-type]
    model = build(shards, config, corpus)
    return ElmoObjective(model, shards, dropout=0.0, negatives=config.samples), SentenceBatches(
        shards, range(len(shards)), batch_words=200
    )


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
@pytest.mark.parametrize("form", ["characters", "words", "both"])
def test_loss_is_the_mean_of_what_the_model_says(corpus: Corpus, tmp_path: Path, form: str, architecture: str) -> None:
    learner, batches = objective(corpus, tmp_path, input=form, architecture=architecture, vocabulary_size=12)
    batch = next(iter(batches))
    types = Shards.build(corpus, tmp_path / "shards").types
    texts = [[types[i] for i in row[1 : n + 1]] for row, n in zip(batch.types, batch.lengths, strict=True)]
    found = learner.model.eval().log_probs(texts)
    count = sum(len(each.forward) for each in found)
    forward = -sum(each.forward.sum() for each in found) / count
    backward = -sum(each.backward.sum() for each in found) / count
    loss = learner.loss(learner.prepare(batch))
    assert loss.total.item() == pytest.approx((forward + backward) / 2, rel=1e-5)
    assert loss.components["forward"].item() == pytest.approx(forward, rel=1e-5)
    assert loss.words == sum(map(len, texts)) and not loss.sampled
    scores = learner.evaluate([batch])
    assert scores["perplexity"] == pytest.approx(math.exp((forward + backward) / 2), rel=1e-5)
    assert scores["backward"] == pytest.approx(math.exp(backward), rel=1e-5)


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({"splitter": "english"}, True),
        ({"splitter": "whitespace"}, False),
        ({"splitter": "english", "normalise_quotes": False}, False),
        ({"splitter": "whitespace", "normalise_quotes": True}, True),
        ({"splitter": UnigramSegmenter(("的",)), "sentences": "chinese"}, False),
    ],
)
def test_quotes_are_read_as_the_corpus_had_them(tmp_path: Path, settings: dict[str, Any], plain: bool) -> None:
    (tmp_path / "text.txt").write_text("“It’s late,” he said.\n" * 3, encoding="utf-8")
    corpus = Corpus(tmp_path / "text.txt", workers=0, **settings)
    shards = Shards.build(corpus, tmp_path / "shards")
    config = ElmoPretraining(size="tiny")
    model = build(shards, config, corpus)
    assert model.config.normalize_quotes is plain and model.splitter == corpus.splitter
    assert not build(shards, config).config.normalize_quotes
    curly = [word for word in model.words("“It’s late,” he said.") if word not in shards.types]
    assert curly == []  # whatever is written, it is words of the text that the model meets


@pytest.mark.parametrize("architecture", ["lstm", "transformer"])
def test_gradients_reach_every_weight(corpus: Corpus, tmp_path: Path, architecture: str) -> None:
    learner, batches = objective(corpus, tmp_path, input="both", architecture=architecture, output="sampled", negatives=5)
    loss = learner.loss(learner.prepare(next(iter(batches))))
    loss.total.backward()
    assert loss.sampled
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in learner.parameters())


def test_batches_hold_every_sentence_once_and_can_be_taken_up(corpus: Corpus, tmp_path: Path) -> None:
    shards = Shards.build(corpus, tmp_path / "shards")
    batches = SentenceBatches(shards, range(len(shards)), batch_words=100, seed=3)
    plan = batches.plan(0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(shards)))
    assert any(a.tolist() != b.tolist() for a, b in zip(plan, batches.plan(1), strict=False))
    stream = iter(batches)
    for _ in range(len(plan) + 2):
        next(stream)
    place = batches.position()
    expected = [next(stream).types for _ in range(3)]
    again = SentenceBatches(shards, range(len(shards)), batch_words=100, seed=3)
    again.seek(place)
    assert place["epoch"] == 1
    for a, b in zip(expected, again, strict=False):
        np.testing.assert_array_equal(a, b.types)
    shares = [
        SentenceBatches(shards, range(len(shards)), batch_words=100, seed=3, rank=rank, world_size=2).plan(0) for rank in (0, 1)
    ]
    assert len(shares[0]) == len(shares[1])


@pytest.mark.parametrize(
    ("architecture", "start"), [("lstm", "learned"), pytest.param("transformer", "zero", marks=pytest.mark.slow)]
)
def test_from_text_to_vectors(corpus: Corpus, tmp_path: Path, architecture: str, start: str) -> None:
    config = ElmoPretraining(
        size="tiny",
        architecture=architecture,  # type: ignore[arg-type]
        vocabulary_size=100,
        batch_words=300,
        bptt=5,
        train=TrainConfig(epochs=16.0, optim=OptimConfig(learning_rate=2e-2)),
    )
    result = config.fit(corpus, Run(seed=1), tmp_path / "model")
    assert result.ended == "budget" and result.scores["perplexity"] < 8
    model = polyseme.load(tmp_path / "model")
    assert model.config.architecture == architecture and model.config.start == start and model.splitter.name == "whitespace"
    assert model.embed(["the cat sat"])[0].shape == (3, 3, 32)
    held_out = [line.split() for line in (TEXT * 4).splitlines()]
    held_out = held_out[-(len(held_out) // 10) :]
    assert model.perplexity(held_out).mean == pytest.approx(result.scores["perplexity"], rel=1e-4)


@pytest.mark.parametrize(
    ("architecture", "form"),
    [
        pytest.param("lstm", "characters", marks=pytest.mark.slow),  # in lanes LSTMs are taught in every run of the tests
        pytest.param("lstm", "words", marks=pytest.mark.slow),
        pytest.param("lstm", "both", marks=pytest.mark.slow),
        pytest.param("transformer", "characters", marks=pytest.mark.slow),
    ],
)
def test_published_training_set(tmp_path: Path, architecture: str, form: str) -> None:
    """bilm-tf's own bar: a perplexity under 20 on its tiny text after 50 epochs."""
    folder = golden("bilm-tf-train")
    corpus = Corpus(folder / "data.txt", splitter="whitespace", sentences="lines", workers=0)
    shards = Shards.build(corpus, tmp_path)
    torch.manual_seed(0)
    config = ElmoPretraining(size="tiny", architecture=architecture, input=form, vocabulary_size=33, dropout=0.0)  # type: ignore[arg-type]
    learner = ElmoObjective(build(shards, config, corpus), shards, dropout=0.0)
    batches = SentenceBatches(shards, range(len(shards)), batch_words=120)
    optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
    for _, batch in zip(range(50 * len(batches.plan(0))), batches, strict=False):
        optimizer.zero_grad()
        learner.loss(learner.prepare(batch)).total.backward()
        optimizer.step()
    assert learner.evaluate(batches.in_order())["perplexity"] < 20
