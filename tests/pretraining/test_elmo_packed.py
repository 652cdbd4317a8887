"""Training over lanes: the fast paths against the plain one over many steps, carried state, learning."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch

from polyseme.nn.lstm.layers import plain_only
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build
from polyseme.pretraining.elmo_packed import PackedElmoObjective
from polyseme.text.batching.packed import PackedBatches
from polyseme.text.batching.stream import SentenceBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from tests.golden_path import golden

TEXT = [f"the {a} sat on the {b} and saw a {a} ." for a in ("cat", "dog", "bird") for b in ("mat", "bank", "river")] * 4


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    (tmp_path / "text.txt").write_text("\n".join(TEXT), encoding="utf-8")
    return Corpus(tmp_path / "text.txt", splitter="whitespace", sentences="lines", workers=0)


@pytest.fixture
def shards(corpus: Corpus, tmp_path: Path) -> Shards:
    return Shards.build(corpus, tmp_path / "shards")


def learner(shards: Shards, corpus: Corpus, *, stream: bool = False, **settings: object) -> PackedElmoObjective:
    torch.manual_seed(0)
    config = ElmoPretraining(size="tiny", dropout=0.0, **settings)  # type: ignore[arg-type]
    return PackedElmoObjective(build(shards, config, corpus), shards, dropout=0.0, negatives=config.samples, stream=stream)


def losses(learner: PackedElmoObjective, batches: PackedBatches, steps: int, rate: float = 3e-3) -> list[float]:
    optimizer = torch.optim.Adam(learner.parameters(), lr=rate)
    found = []
    for _, batch in zip(range(steps), batches, strict=False):
        optimizer.zero_grad()
        loss = learner.loss(learner.prepare(batch)).total
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


SAMPLED = {"input": "both", "output": "sampled", "negatives": 9}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("settings", "stream"),
    [
        pytest.param({}, True, id="full-stream", marks=pytest.mark.slow),
        pytest.param({}, False, id="full-sentences", marks=pytest.mark.slow),
        pytest.param(SAMPLED, False, id="sampled-sentences", marks=pytest.mark.slow),
        pytest.param(SAMPLED, True, id="sampled-stream", marks=pytest.mark.slow),
    ],
)
def test_fifty_steps_the_plain_way_and_the_fast_way(
    shards: Shards, corpus: Corpus, settings: dict[str, object], stream: bool, device: str
) -> None:
    """The fused layers, on a GPU as a recorded graph, have the plain path's losses, to 1e-4, step after step."""
    found = []
    for plain in (True, False):
        model = learner(shards, corpus, stream=stream, **settings).to(device)
        torch.manual_seed(1)
        batches = PackedBatches(shards, range(len(shards)), batch_size=4, bptt=7, seed=1)
        if plain:
            with plain_only():
                found.append(losses(model, batches, 50))
        else:
            found.append(losses(model, batches, 50))
    assert found[0] == pytest.approx(found[1], rel=1e-4)
    assert found[0][-1] < 0.7 * found[0][0]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gradients_of_two_batches_add_up_with_a_graph(shards: Shards, corpus: Corpus) -> None:
    """The second batch of an accumulated step does not overwrite the gradients of the first, which is the graph's memory."""
    found = []
    for plain in (True, False):
        model = learner(shards, corpus).cuda()
        batches = PackedBatches(shards, range(len(shards)), batch_size=4, bptt=7, seed=1)
        with plain_only() if plain else contextlib.nullcontext():
            for number, batch in zip(range(3), batches, strict=False):
                model.loss(model.prepare(batch)).total.backward()
                if number == 0:  # it begins with the start state, through which graphs give no gradients
                    model.zero_grad()
        found.append({name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        torch.testing.assert_close(
            found[1][name], gradient, rtol=1e-3, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("settings", [{}, {"output": "sampled", "negatives": 9}], ids=["full", "sampled"])
def test_bf16_learns_what_fp32_learns(shards: Shards, corpus: Corpus, settings: dict[str, object]) -> None:
    """All kernels in few bits: the losses stay near those in full precision."""
    found = []
    for few in (False, True):
        model = learner(shards, corpus, **settings).cuda()
        torch.manual_seed(1)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=few):
            found.append(losses(model, PackedBatches(shards, range(len(shards)), batch_size=64, bptt=7, seed=1), 50))
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_a_packed_batch_has_the_loss_of_its_sentences(shards: Shards, corpus: Corpus) -> None:
    """One lane over whole sentences gives the mean of what the model says of them alone."""
    model = learner(shards, corpus)
    length = len(TEXT[0].split()) + 1
    batches = PackedBatches(shards, range(len(shards)), batch_size=2, bptt=2 * length)
    batch = next(iter(batches))
    texts = [
        [shards.types[i] for i in batch.inputs[0, part, lane][1:]]
        for lane in (0, 1)
        for part in (slice(0, length), slice(length, None))
    ]
    said = model.model.eval().perplexity(texts)
    loss = model.train().loss(model.prepare(batch))
    assert torch.exp(loss.total).item() == pytest.approx(said.mean, rel=1e-5)
    assert torch.exp(loss.components["forward"]).item() == pytest.approx(said.forward, rel=1e-5)
    assert loss.words == 4 * (length - 1)


def test_carried_state_is_given_and_put_back(shards: Shards, corpus: Corpus) -> None:
    one, other = learner(shards, corpus), learner(shards, corpus)
    batches = PackedBatches(shards, range(len(shards)), batch_size=3, bptt=4)
    stream = iter(batches)
    assert one.carried_state() == {}
    with torch.no_grad():
        one.loss(one.prepare(next(stream)))
        other.restore_carried_state(one.carried_state())
        batch = next(stream)
        assert other.loss(other.prepare(batch)).total.item() == one.loss(one.prepare(batch)).total.item()
        other.restore_carried_state({})
        assert other.loss(other.prepare(batch)).total.item() != one.loss(one.prepare(batch)).total.item()


@pytest.mark.slow  # seven seconds each; fifty steps teach such models in every run of the tests
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "sentences"])
@pytest.mark.parametrize("form", ["characters", "words", "both"])
def test_published_training_set(tmp_path: Path, form: str, stream: bool) -> None:
    """bilm-tf's own bar: a perplexity under 20 on its tiny text after 50 epochs, by two lanes of ten steps."""
    corpus = Corpus(golden("bilm-tf-train") / "data.txt", splitter="whitespace", sentences="lines", workers=0)
    shards = Shards.build(corpus, tmp_path)
    model = learner(shards, corpus, input=form, vocabulary_size=33, stream=stream)
    batches = PackedBatches(shards, range(len(shards)), batch_size=2, bptt=10)
    losses(model, batches, 50 * (batches.words_per_epoch + len(shards)) // 20, 1e-2)
    held_out = SentenceBatches(shards, range(len(shards)), batch_words=120).in_order()
    assert model.evaluate(held_out)["perplexity"] < 20
