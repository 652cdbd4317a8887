"""Models that go on learning: before and after, restarts, every kind of model, and the way back to HDF5."""

from __future__ import annotations

import json
import math
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.vocabulary_extension import extend_vocabulary
from polyseme.formats import bilm
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.pretraining.adapt import ElmoAdaptationJob, adapt, add_words, fingerprint, missing_words
from polyseme.pretraining.defaults import NEGATIVES_ON_CPU
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import ElmoAdaptation, ElmoPretraining, allowed_batchings
from polyseme.pretraining.elmo_job import MappedShards, build
from polyseme.pretraining.elmo_packed import PackedElmoObjective
from polyseme.pretraining.result import AdaptationResult
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Loss
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import TRANSFORMER, elmo
from tests.golden_path import golden
from tests.oracle.make import write_bilm, write_manylangs

LINES = [f"the {a} of the {b} had a {a} , {b} ." for a in ("patient", "stent", "dose") for b in ("bank", "ward", "cat")] * 8
FAST = TrainConfig(steps=12, eval_every=4, optim=OptimConfig(learning_rate=3e-2))
CONFIG = ElmoAdaptation(batch_words=160, bptt=5, dropout=0.0, train=FAST)


def text_of(lines: list[str], folder: Path) -> Corpus:
    (folder / "domain.txt").write_text("\n".join(lines), encoding="utf-8")
    return Corpus(folder / "domain.txt", splitter="whitespace", sentences="lines", workers=0)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return text_of(LINES, tmp_path)


def held_out(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines[-max(1, len(lines) // 100, min(50, len(lines) // 10)) :]]


def from_pretraining(corpus: Corpus, folder: Path, **settings: Any) -> Elmo:
    """A new model of ours whose vocabulary lacks half of the text's words, loaded as a user would."""
    shards = Shards.build(corpus, folder / "shards")
    torch.manual_seed(0)
    model = build(shards, ElmoPretraining(size="tiny", vocabulary_size=8, **settings), corpus)
    return polyseme.load(model.save_pretrained(folder / "start"))


OURS: dict[str, tuple[dict[str, Any], str, type]] = {
    "characters": ({}, "packed", FullSoftmax),
    "both": ({"input": "both"}, "packed", FullSoftmax),
    "tied": ({"input": "words", "tied": True}, "packed", TiedSoftmax),
    "adaptive": ({"output": "adaptive"}, "packed", AdaptiveSoftmax),
    "stream": ({"batching": "stream"}, "stream", FullSoftmax),
    "transformer": ({"architecture": "transformer"}, "sentences", FullSoftmax),
}


QUICK = ("characters", "adaptive")


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.slow]) for kind in OURS])
def test_models_of_ours(corpus: Corpus, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    settings, batching, output = OURS[kind]
    model = from_pretraining(corpus, tmp_path, **settings)
    old = list(model.vocabulary or ())
    expected = polyseme.load(tmp_path / "start")
    adapted = adapt(model, corpus, tmp_path / "out", CONFIG, Run(seed=1))
    new = {word for line in LINES for word in line.split()} - set(old) if kind != "adaptive" else set()
    assert set(adapted.added) == new and len(adapted.added) == len(new) and len(old) == 8
    assert ("takes no new words: none are added" in caplog.text) is (kind == "adaptive")
    if kind != "adaptive":
        untouched = expected.perplexity(held_out(LINES)).mean
        assert adapted.before is not None and adapted.before["old_vocabulary"] == pytest.approx(untouched, rel=1e-5)
        counts = Counter(word for line in LINES for word in line.split())
        tokens = sum(counts[word] for word in adapted.added)  # no word of the text stays unknown
        extend_vocabulary(expected, adapted.added, [counts[word] / (tokens + len(new)) for word in adapted.added])
    said = expected.perplexity(held_out(LINES))
    assert adapted.before is not None
    assert adapted.before["perplexity"] == pytest.approx(said.mean, rel=1e-5)
    assert adapted.before["backward"] == pytest.approx(said.backward, rel=1e-5)
    assert adapted.better and adapted.scores["perplexity"] < 0.8 * said.mean
    found = polyseme.load(tmp_path / "out")
    assert type(found.output) is output and list(found.vocabulary or ()) == old + adapted.added
    assert found.perplexity(held_out(LINES)).mean == pytest.approx(adapted.scores["perplexity"], rel=1e-4)
    checkpoint = json.loads(max((tmp_path / "out" / "run").glob("checkpoint-*.json")).read_text())
    assert checkpoint["values"]["settings"]["settings"]["adaptation"]["batching"] == batching
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"| words added | {len(new)} |" in card and "| adapted from | start |" in card and str(tmp_path) not in card
    assert f"Before training it was {said.mean:,.2f} (forward {said.forward:,.2f}" in card
    assert ("With the added words counted as unknown, it is " in card) is (kind != "adaptive")


class Stopping:
    """Asks the run to stop at one of its batches."""

    def __init__(self, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = at
        for kind in (ElmoObjective, PackedElmoObjective):
            monkeypatch.setattr(kind, "loss", self.wrapped(kind.loss))

    def wrapped(self, loss: Callable[..., Loss]) -> Callable[..., Loss]:
        def counted(learner: ElmoObjective, batch: Any) -> Loss:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return loss(learner, batch)

        return counted


@pytest.mark.parametrize(
    "fresh_output", [pytest.param(False, marks=pytest.mark.slow), True], ids=["its own output", "a new output"]
)
def test_interrupted_and_resumed(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_output: bool) -> None:
    def start() -> Elmo:
        return elmo(form="both", output=not fresh_output, start="learned", seed=5)

    config = CONFIG.replace(dropout=0.1)
    whole = adapt(start(), corpus, tmp_path / "whole", config, Run(seed=2))
    with monkeypatch.context() as patch:
        Stopping(6, patch)
        cut = adapt(start(), corpus, tmp_path / "cut", config, Run(seed=2))
        assert cut.ended is None and cut.steps == 6 and cut.before == whole.before
    evaluations = []
    evaluate = ElmoObjective.evaluate
    monkeypatch.setattr(ElmoObjective, "evaluate", lambda self, dev: evaluations.append(1) or evaluate(self, dev))
    again = adapt(start(), corpus, tmp_path / "cut", config, Run(seed=2))
    assert len(evaluations) == 2  # after steps 8 and 12; what was before is known
    assert again.before == whole.before and again.scores == whole.scores and again.added == whole.added
    for name in ("model.safetensors", "output.safetensors", "vocabulary.txt", "config.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_another_model_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    adapt(elmo(output=True), corpus, tmp_path / "out", CONFIG, Run())
    with pytest.raises(PolysemeError, match=r"the model changed"):
        adapt(elmo(output=True, seed=1), corpus, tmp_path / "out", CONFIG, Run())
    assert fingerprint(elmo(output=True)) == fingerprint(elmo(output=True)) != fingerprint(elmo(output=True, seed=1))
    own = polyseme.load(tmp_path / "out")
    with pytest.raises(UsageError, match="choose another folder"):
        adapt(own, corpus, tmp_path / "out", CONFIG, Run())


def test_no_gain_is_reported(corpus: Corpus, tmp_path: Path) -> None:
    """Far too high a rate: the folder holds a model all the same, and the result says that it is worse."""
    once = adapt(elmo(output=True), corpus, tmp_path / "once", CONFIG.replace(train=FAST.replace(steps=24)), Run())
    assert once.better
    wild = TrainConfig(steps=3, eval_every=1, optim=OptimConfig(learning_rate=3.0, warmup=0.0))
    worse = adapt(polyseme.load(tmp_path / "once"), corpus, tmp_path / "twice", CONFIG.replace(train=wild), Run())
    assert worse.better is False and worse.added == []
    found = polyseme.load(tmp_path / "twice").perplexity(held_out(LINES)).mean
    assert found == pytest.approx(worse.scores["perplexity"], rel=1e-4) and found > worse.before["perplexity"]  # type: ignore[index]


def test_frozen_layer_groups_do_not_change(corpus: Corpus, tmp_path: Path) -> None:
    model = elmo(output=True)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    config = CONFIG.replace(freeze=("tokens", "layer1"), new_words=0)
    assert adapt(model, corpus, tmp_path / "out", config, Run()).added == []
    same = {name.split(".")[0] for name, value in model.state_dict().items() if torch.equal(value, start[name])}
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, start[name])}
    assert all(name.startswith("tokens.") or "_layers.0." in name for name in start if name not in moved) and "tokens" in same
    assert any("_layers.1." in name for name in moved) and "output.bias" in moved
    with pytest.raises(UsageError, match="unknown layer group 'layer9'"):
        adapt(elmo(output=True), corpus, tmp_path / "x", CONFIG.replace(freeze=("layer9",)), Run())
    every = tuple(elmo(output=True).layer_groups())
    with pytest.raises(UsageError, match="freeze leaves nothing to train"):
        adapt(elmo(output=True), corpus, tmp_path / "y", CONFIG.replace(freeze=every), Run())


@pytest.mark.parametrize(
    "batching", ["packed", pytest.param("stream", marks=pytest.mark.slow), pytest.param("sentences", marks=pytest.mark.slow)]
)
def test_every_batching_from_zeros(corpus: Corpus, tmp_path: Path, batching: str) -> None:
    config = CONFIG.replace(batching=batching, output="sampled", negatives=12)
    assert adapt(elmo(output=True), corpus, tmp_path / "out", config, Run()).better


def test_batchings_and_mistakes(corpus: Corpus, tmp_path: Path) -> None:
    assert allowed_batchings(elmo().config)[0] == "packed" and allowed_batchings(elmo(start="learned").config)[0] == "packed"
    assert allowed_batchings(elmo(start="warm").config) == ("stream",)
    assert allowed_batchings(elmo(transformer=TRANSFORMER).config) == ("sentences",)
    with pytest.raises(ConfigError, match="'stream', but this model has the start state 'learned'; allowed: packed, sentences"):
        adapt(elmo(start="learned", output=True), corpus, tmp_path / "a", CONFIG.replace(batching="stream"), Run())
    with pytest.raises(ConfigError, match="but this model is a Transformer; allowed: sentences"):
        adapt(elmo(transformer=TRANSFORMER, output=True), corpus, tmp_path / "b", CONFIG.replace(batching="packed"), Run())
    clusters = from_pretraining(corpus, tmp_path, output="adaptive")
    with pytest.raises(ConfigError, match="new_words is 5; allowed for a model with an adaptive output layer: 0"):
        adapt(clusters, corpus, tmp_path / "c", CONFIG.replace(new_words=5), Run())
    with pytest.raises(ConfigError, match=r"new_words is -1; .*min_count is 0; .*vocabulary_size is 3"):
        ElmoAdaptation(new_words=-1, min_count=0, vocabulary_size=3)
    with pytest.raises(ConfigError, match="negatives=7 needs output='sampled', not full"):
        ElmoAdaptation(output="full", negatives=7)
    assert ElmoAdaptation.from_dict(CONFIG.to_dict()) == CONFIG


def test_words_of_other_text_stay_as_likely_as_they_were(tmp_path: Path) -> None:
    """Many rare words are added: what other text has, known and unknown words, is hardly less likely at once."""
    rare = [f"{name}{number}" for number in range(40) for name in ("ron", "lisa")]
    lines = ["the cat of the river"] * 200 + [f"the {name} of {name}" for name in rare] + [f"once{n} ." for n in range(400)]
    other = [line.split() for line in ("the unheard of the cat", "a river , a bank .", "unseen") * 10]
    untouched = elmo(output=True).perplexity(other).mean
    model = elmo(output=True)
    shards = MappedShards(Shards.build(text_of(lines, tmp_path), tmp_path / "s"), model.config)
    added = add_words(model, shards, 10_000, 2)
    assert len(added) == 80
    assert untouched < model.perplexity(other).mean < 1.05 * untouched  # a sixth are unknown; equal parts: 2.08 times
    known = [["the", "cat", "of", "a", "bank"], ["the", "river", "."]]
    assert model.perplexity(known).mean == pytest.approx(elmo(output=True).perplexity(known).mean, rel=1e-4)
    new, before = model.log_probs([["the", "lisa7"]])[0], elmo(output=True).log_probs([["the", "lisa7"]])[0]
    share = 2 / (160 + 400 + 80 + 400)  # tokens and types that the vocabulary lacked
    assert new.forward[1] - before.forward[1] == pytest.approx(math.log(share), abs=1e-4)


def resolving(corpus: Corpus, folder: Path, config: ElmoAdaptation) -> tuple[ElmoAdaptationJob, Shards]:
    job = ElmoAdaptationJob(config, corpus, Run(device=torch.device("cpu")), folder / "out")
    job.model = elmo(output=True)
    return job, job.encode_text()


def test_on_a_cpu_many_words_are_sampled(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, shards = resolving(corpus, tmp_path, CONFIG)
    assert job.resolve_defaults(shards).output == "full"  # of 21 words
    monkeypatch.setattr("polyseme.pretraining.adapt.FULL_ON_CPU", 20)
    found = job.resolve_defaults(shards)
    assert (found.output, found.negatives) == ("sampled", NEGATIVES_ON_CPU)
    job.method = CONFIG.replace(output="full")
    assert job.resolve_defaults(shards).output == "full"
    job.model.output = AdaptiveSoftmax(21, 8)
    job.method = CONFIG
    assert job.resolve_defaults(shards).output == "full"


def test_batch_and_held_out_text_fit_the_minutes(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.pretraining.job._EVALUATED", 1e-9)
    monkeypatch.setattr("polyseme.pretraining.job._FEWEST", 4)
    open_batch = CONFIG.replace(batch_words=None, train=TrainConfig(minutes=0.5, optim=FAST.optim))
    job, shards = resolving(corpus, tmp_path, open_batch)
    job.resolve(shards, range(40), range(40, len(shards)))
    assert job.method.dev_size == 4 and job.split(shards)[1] == range(len(shards) - 4, len(shards))
    assert job.method.batch_words is not None and job.method.batch_words <= 256
    assert len(job.model.vocabulary or ()) == 21  # only a copy got new words
    job.method = open_batch.replace(dev_size=30, batch_words=64)
    job.resolve(shards, range(40), range(40, len(shards)))
    assert (job.method.dev_size, job.method.batch_words) == (30, 64)
    monkeypatch.setattr("polyseme.pretraining.job.NEGATIVES_ON_CPU", 5)  # fewer than the words of the vocabulary
    hurried = open_batch.replace(train=open_batch.train.replace(minutes=1e-5))
    for job.method, said in (
        (hurried, "make it faster: output='sampled'$"),
        (hurried.replace(output="sampled"), "smaller model$"),
    ):
        with pytest.raises(PolysemeError, match=rf"minutes=1e-05 is too short.*{said}"):
            job.resolve(shards, range(40), range(40, len(shards)))
    job.method = hurried.replace(dev_size=200)
    with pytest.raises(PolysemeError, match=r"make it faster: dev_size=100 output='sampled'$"):
        job.resolve(shards, range(40), range(40, len(shards)))
    job.method = hurried.replace(dev_size=100)
    monkeypatch.undo()
    with pytest.raises(PolysemeError, match=r"or a smaller model$"):  # few sentences and words: no option would help
        job.resolve(shards, range(40), range(40, len(shards)))


def test_held_out_text_is_fitted_by_a_coarse_clock(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of Windows stands still for 16 ms."""
    job, shards = resolving(corpus, tmp_path, CONFIG.replace(train=TrainConfig(minutes=1, optim=FAST.optim)))
    monkeypatch.setattr("polyseme.pretraining.job.time.monotonic", lambda: 0.0)
    job.resolve(shards, range(40), range(40, len(shards)))
    assert job.method.dev_size is None  # there is time for all


def test_which_words_join(tmp_path: Path) -> None:
    corpus = text_of(["the stent the dose", "stent dose stent once", "the cat sat"], tmp_path)
    model = elmo(output=True)
    shards = MappedShards(Shards.build(corpus, tmp_path / "s"), model.config)
    assert model.vocabulary is not None
    assert missing_words(shards, model.vocabulary, limit=10, min_count=2) == ["stent", "dose"]
    assert missing_words(shards, model.vocabulary, limit=10, min_count=1) == ["stent", "dose", "once"]
    assert missing_words(shards, model.vocabulary, limit=1, min_count=1) == ["stent"]
    assert missing_words(shards, model.vocabulary, limit=0, min_count=1) == []


@pytest.mark.parametrize(
    ("words_only", "softmax"),
    [
        pytest.param(False, True, id="characters-softmax"),
        pytest.param(True, False, id="words-no softmax"),
        pytest.param(False, False, id="characters-no softmax", marks=pytest.mark.slow),
        pytest.param(True, True, id="words-softmax", marks=pytest.mark.slow),
    ],
)
def test_from_hdf5_and_back(corpus: Corpus, tmp_path: Path, words_only: bool, softmax: bool) -> None:
    source = write_bilm(tmp_path / "elmo", softmax=softmax, words_only=words_only, scale=0.8)
    model = polyseme.load(source)
    adapted = adapt(model, corpus, tmp_path / "out", CONFIG, Run())
    assert (adapted.before is None) is not softmax and adapted.better is (True if softmax else None)
    ours = polyseme.load(tmp_path / "out")
    home = polyseme.load(bilm.write(ours, tmp_path / "home"))
    assert home.vocabulary is not None and home.vocabulary.words == (ours.vocabulary and ours.vocabulary.words)
    assert "stent" in home.vocabulary and home.config.start == ours.config.start == "zero"
    for a, b in zip(ours.embed(held_out(LINES)), home.embed(held_out(LINES)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert home.perplexity(held_out(LINES)).mean == pytest.approx(adapted.scores["perplexity"], rel=1e-4)


@pytest.mark.slow  # models of the same format, which the tests write, are adapted in every run
def test_published_hdf5(tmp_path: Path) -> None:
    """The golden model of bilm-tf has no output layer; with its new one it goes on a second time."""
    config = CONFIG.replace(train=FAST.replace(steps=60))
    first = adapt(polyseme.load(golden("bilm-tf")), text_of(LINES, tmp_path), tmp_path / "first", config, Run())
    assert first.before is None and first.better is None and first.scores["perplexity"] < 10  # of 14 words
    home = bilm.write(polyseme.load(tmp_path / "first"), tmp_path / "home")
    lines = (golden("bilm-tf-train") / "data.txt").read_text(encoding="utf-8").splitlines() * 10
    second = adapt(polyseme.load(home), text_of(lines, tmp_path), tmp_path / "second", config, Run())
    assert second.better and "embeddings" in second.added
    back = polyseme.load(bilm.write(polyseme.load(tmp_path / "second"), tmp_path / "back"))
    assert back.perplexity(held_out(lines)).mean == pytest.approx(second.scores["perplexity"], rel=1e-4)


@pytest.mark.parametrize(
    "name", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("en-char", "zh-word")), "zh-word-char"]
)
def test_manylangs(corpus: Corpus, tmp_path: Path, name: str) -> None:
    model = polyseme.load(golden("manylangs") / name)
    before = model.embed(held_out(LINES))
    adapted = adapt(model, corpus, tmp_path / "out", CONFIG, Run())
    assert adapted.before is None and adapted.scores["perplexity"] < 40
    assert ("stent" in adapted.added) is (name != "en-char")
    found = polyseme.load(tmp_path / "out")
    assert found.vocabulary is not None and "stent" in found.vocabulary and "<S>" not in found.vocabulary
    assert found.perplexity(held_out(LINES)).mean == pytest.approx(adapted.scores["perplexity"], rel=1e-4)
    assert before[0].shape == found.embed(held_out(LINES))[0].shape
    again = adapt(found, corpus, tmp_path / "again", CONFIG, Run())
    assert again.before is not None and again.before["perplexity"] == pytest.approx(adapted.scores["perplexity"], rel=1e-4)


def test_tables_that_cut_words(tmp_path: Path) -> None:
    """Words of one beginning are one word to such a model, at its input and at its output."""
    source = write_manylangs(tmp_path / "m", word_dim=6, char_dim=4, max_characters=8, scale=0.8)
    lines = ["bank paracetamol paracetam of the river", "the ibuprofenum of the bank"] * 20
    adapted = adapt(polyseme.load(source), text_of(lines, tmp_path), tmp_path / "out", CONFIG, Run())
    assert sorted(adapted.added) == ["ibupro", "parace"]
    found = polyseme.load(tmp_path / "out")
    assert found.log_probs([["paracetamol", "ibuprofen", "other"]])[0].known.tolist() == [True, True, False]
    assert found.perplexity(held_out(lines)).mean == pytest.approx(adapted.scores["perplexity"], rel=1e-4)


@pytest.mark.parametrize(
    ("words", "advice"), [(298, "it has read 3 % of the text: give it more time"), (30_000, "try more text, fewer epochs")]
)
def test_advice_where_adapting_has_not_helped(words: int, advice: str) -> None:
    scores = {"before": {"perplexity": 53.2}, "scores": {"perplexity": 53.5}}
    result = AdaptationResult(
        out=Path("out"), method="adapt", words=words, text_words=10_000, seconds=60.0, steps=16, best_step=16, **scores
    )
    assert advice in str(result)
