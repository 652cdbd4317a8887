"""ElmoTraining a feed-forward language model: the loss against the model's own answers, learning, and going on after a stop."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.nnlm import Nnlm
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.nnlm import NnlmObjective
from polyseme.pretraining.nnlm_config import NnlmPretraining
from polyseme.pretraining.vocabulary_index import index_vocabulary
from polyseme.text.batching.stream import SentenceBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import get_splitter
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from tests.pretraining.stopping import stopped_after

LINES = [f"the {a} sat on the {b} and saw a {a} ." for a in ("cat", "dog", "bird") for b in ("mat", "bank", "river")] * 4
READ = {"splitter": "whitespace", "sentences": "lines", "workers": 0}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return Corpus(tmp_path / "text.txt", **READ)  # type: ignore[arg-type]


def config(**changes: object) -> NnlmPretraining:
    train = TrainConfig(epochs=40.0, optim=OptimConfig(learning_rate=1e-2))
    return NnlmPretraining(order=4, dim=8, hidden_size=16, dropout=0.1, batch_words=200, train=train).replace(**changes)


def test_a_long_sentence_loses_no_word(tmp_path: Path) -> None:
    lines = [[f"w{number}" for number in range(count)] for count in (9, 0, 4, 5, 1)]
    (tmp_path / "long.txt").write_text("".join(" ".join(line) + "\n" for line in lines))
    shards = Shards.build(Corpus(tmp_path / "long.txt", **READ), tmp_path / "shards")  # type: ignore[arg-type]
    batches = SentenceBatches(shards, range(len(shards)), max_length=4)
    assert batches.words_per_epoch == shards.total == 19
    found = [
        row[1 : length + 1] for batch in batches.in_order() for row, length in zip(batch.types, batch.lengths, strict=True)
    ]
    pieces = [line[begin : begin + 4] for line in lines for begin in range(0, len(line), 4)]
    assert sorted([shards.types[word] for word in row] for row in found) == sorted(pieces)


@pytest.mark.parametrize("words", [None, 9])
def test_loss_is_the_mean_of_what_the_model_says(tmp_path: Path, words: int | None) -> None:
    (tmp_path / "odd.txt").write_text("the cat sat\na <unk> </S> dog saw\nbird\n", encoding="utf-8")
    text = Corpus(tmp_path / "odd.txt", **READ)  # type: ignore[arg-type]
    shards = Shards.build(text, tmp_path / "shards")
    names, ids = index_vocabulary(shards, vocabulary_size=words, min_count=1)
    method = config(vocabulary_size=words, dropout=0.0)
    vocabulary = Vocabulary(names, unknown="<unk>", begin="<s>", end="</s>")
    model = Nnlm(method.encoder_config(len(vocabulary)), vocabulary=vocabulary, splitter=get_splitter("whitespace"))
    learner = NnlmObjective(model, ids, dropout=method.dropout)
    (batch,) = SentenceBatches(shards, range(3)).in_order()
    loss = learner.loss(learner.prepare(batch))
    said = model.eval().perplexity([["the", "cat", "sat"], ["a", "<unk>", "</S>", "dog", "saw"], ["bird"]])
    assert loss.words == 9 and said.predictions == 12
    assert np.exp(loss.total.item()) == pytest.approx(said.mean, rel=1e-5)
    assert learner.evaluate([batch])["perplexity"] == pytest.approx(said.mean, rel=1e-5)


def test_from_text_to_a_model(corpus: Corpus, tmp_path: Path) -> None:
    result = config().fit(corpus, Run(seed=1), tmp_path / "m")
    assert result.ended == "budget" and result.scores["perplexity"] < 3
    model = polyseme.load(tmp_path / "m")
    assert model.perplexity(LINES[-(len(LINES) // 10) :]).mean == pytest.approx(result.scores["perplexity"], rel=1e-4)
    assert model.encode(["the cat"], pooling="sif").any(), "statistics for sentence vectors are measured at the end"
    card = (tmp_path / "m" / "README.md").read_text()
    assert "| order | 4 |" in card and f"Perplexity {result.scores['perplexity']:.2f}, by the full softmax" in card
    with pytest.raises(PolysemeError, match=r"other settings \(hidden_size: 16 in the run, 17 now"):
        config(hidden_size=17).fit(corpus, Run(seed=1), tmp_path / "m")


def test_as_many_sentences_are_held_out_as_the_user_says(corpus: Corpus, tmp_path: Path) -> None:
    """A dev file that is given last is held out as a whole."""
    (tmp_path / "dev.txt").write_text("the bird sat on the dog .\na mat saw the cat .\n")
    both = Corpus([tmp_path / "text.txt", tmp_path / "dev.txt"], **READ)  # type: ignore[arg-type]
    result = config(dev_size=2).fit(both, Run(seed=1), tmp_path / "m")
    said = polyseme.load(tmp_path / "m").perplexity(["the bird sat on the dog .", "a mat saw the cat ."])
    assert said.mean == pytest.approx(result.scores["perplexity"], rel=1e-4)
    assert "on 2 held-out sentences" in (tmp_path / "m" / "README.md").read_text()
    with pytest.raises(PolysemeError, match="dev_size=38 leaves nothing to train on: the text has 38 sentences; hold"):
        config(dev_size=38).fit(both, Run(seed=1), tmp_path / "n")


def test_a_sample_of_the_vocabulary(corpus: Corpus, tmp_path: Path) -> None:
    result = config(negatives=8).fit(corpus, Run(seed=1), tmp_path / "m")
    assert result.scores["perplexity"] < 4


def test_an_interrupted_run_resumes_to_the_same_model(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, texts = config(train=TrainConfig(steps=12)), [LINES[0], "dog cat the"]
    method.fit(corpus, Run(seed=3), tmp_path / "whole")
    with stopped_after(5, NnlmObjective, monkeypatch):
        assert method.fit(corpus, Run(seed=3), tmp_path / "parts").ended is None
    assert method.fit(corpus, Run(seed=3), tmp_path / "parts").steps == 12
    whole, parts = (polyseme.load(tmp_path / name).score(texts) for name in ("whole", "parts"))
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 1}, "order is 1"),
        ({"dropout": 1.0}, "dropout is 1.0; allowed: 0 or more, below 1"),
        ({"vocabulary_size": 3, "negatives": 0}, "vocabulary_size is 3; allowed: 4 or more; negatives is 0"),
        ({"batch_words": 0}, "batch_words is 0"),
    ],
)
def test_what_cannot_be(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        NnlmPretraining(**options)  # type: ignore[arg-type]


def test_another_runs_model_is_not_written_over(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "m"
    config(train=TrainConfig(steps=1)).fit(corpus, Run(), out)
    config(train=TrainConfig(steps=1)).fit(corpus, Run(), out)  # its own run goes on, or is over
    shutil.rmtree(out / "run")
    before = (out / "model.safetensors").read_bytes()
    with pytest.raises(PolysemeError, match="m holds a model of another run: choose another folder, or remove it first"):
        config(train=TrainConfig(steps=1)).fit(corpus, Run(), out)
    with pytest.raises(PolysemeError, match="holds a model of another run"):
        ElmoPretraining(size="tiny").fit(corpus, Run(), out)
    assert (out / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("options", "last", "told"),
    [
        ({}, LINES[0], True),
        ({"vocabulary_size": 12}, LINES[0], False),
        ({"min_count": 2}, LINES[0], True),  # all words come more often
        ({"min_count": 2}, "a zebra sat .", True),  # which is held out
        ({}, "<unk> sat .", True),
    ],
)
def test_training_without_unknown_words_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: dict[str, int], last: str, told: bool
) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in [*LINES, last]), encoding="utf-8")
    for _ in range(2):  # the second time it is over
        text = Corpus(tmp_path / "text.txt", **READ)  # type: ignore[arg-type]
        config(train=TrainConfig(steps=1), **options).fit(text, Run(), tmp_path / "m")
    said = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    expected = "every word of the text is in the vocabulary, so <unk> is not trained: for perplexities of other text, give "
    assert said == ([f"{expected}min_count=2 or vocabulary_size"] if told else [])


def test_an_unknown_word_of_the_text_itself_is_learned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in ["the <unk> sat .", *LINES]), encoding="utf-8")
    config(train=TrainConfig(steps=1)).fit(Corpus(tmp_path / "text.txt", **READ), Run(), tmp_path / "m")  # type: ignore[arg-type]
    assert not caplog.records
