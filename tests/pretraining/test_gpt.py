"""GPT's rows hold the text, its loss is the library's, and a run gives a language model that opens everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.run import Run
from polyseme.encoders.gpt import Gpt
from polyseme.pretraining.gpt import IGNORED, GptBatches, GptObjective
from polyseme.pretraining.subword_config import GptPretraining
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer, train_bpe
from polyseme.training.config import TrainConfig
from tests.encoders.small_subwords import byte_pairs, gpt

transformers = pytest.importorskip("transformers", reason="needs the extra `transformers`")


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("gpt") / "text.txt"
    source = np.random.default_rng(0)
    lines = [" ".join(source.choice(["the", "bank", "of", "rivers", "naïve", "."], source.integers(1, 30))) for _ in range(60)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shards(text: Path) -> tuple[SubwordShards, SubwordTokenizer]:
    corpus = Corpus(text, workers=0)
    pieces = SubwordTokenizer(train_bpe(corpus, 290))
    return SubwordShards.build(Shards.build(corpus, text.parent), pieces), pieces


def test_rows_hold_the_text_and_their_targets_follow(shards) -> None:
    store, pieces = shards
    mark = pieces.special_token_id("eos")
    batches = GptBatches(store, range(10, 60), mark, max_length=16, batch_size=4)
    expected = []
    for number in range(10, 60):
        places = store.document(number)
        expected += [mark, *store.subwords(int(places[0]), int(places[-1]))[0].tolist()]
    expected.append(mark)
    found = batches.once()
    targets = np.concatenate([batch.targets.reshape(-1) for batch in found])
    assert [expected[0], *targets[targets != IGNORED].tolist()] == expected
    for batch in found:
        same = (batch.ids[:, 1:] == batch.targets[:, :-1]) | (batch.targets[:, :-1] == IGNORED)
        assert same.all()
    assert sum(batch.words for batch in found) == batches.words_per_epoch == store.words(range(10, 60)) + 50


def test_epochs_positions_and_ranks(shards) -> None:
    store, pieces = shards

    def make(**place: int) -> GptBatches:
        return GptBatches(
            store, range(60), pieces.special_token_id("eos"), max_length=16, batch_size=4, run=Run(seed=5, **place)
        )

    one, other, words = make(), make(), 0
    stream = iter(one)
    while (batch := next(stream)) is not None and one.position()["epoch"] == 0:
        assert batch.ids.shape[1] == 16
        words += batch.words
    assert words == one.words_per_epoch
    other.seek(json.loads(json.dumps(one.position())))
    for _ in range(10):
        assert (next(stream).ids == next(iter(other)).ids).all()
    shares, whole = [iter(make(rank=rank, world_size=2)) for rank in (0, 1)], iter(make())
    for _ in range(4):
        for share in shares:
            assert (next(share).ids == next(whole).ids).all()


def test_the_loss_is_the_librarys() -> None:
    model = gpt()
    rows = torch.randint(1, len(byte_pairs()), (3, 9), generator=torch.Generator().manual_seed(0))
    objective = GptObjective(model)
    batch = type("Batch", (), {"ids": rows[:, :-1].numpy(), "targets": rows[:, 1:].numpy(), "words": 24})
    with torch.no_grad():
        found = objective.loss(objective.prepare(batch))  # type: ignore[arg-type]
        theirs = model.network(input_ids=rows, labels=rows).loss
        scores = objective.evaluate([batch])  # type: ignore[list-item]
    assert found.total.item() == pytest.approx(theirs.item(), rel=1e-5) == scores["loss"]
    assert scores["word_perplexity"] == pytest.approx(np.exp(theirs.item()), rel=1e-4)


def test_a_run_gives_a_language_model(text: Path, tmp_path: Path) -> None:
    config = GptPretraining(vocabulary_size=290, max_length=16, batch_subwords=128, train=TrainConfig(steps=12, eval_every=6))
    result = config.fit(Corpus(text, workers=0), Run(seed=1), tmp_path / "m")
    assert result.ended == "budget" and result.scores["piece_perplexity"] < 290
    assert transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "m").config.n_embd == 128
    model = polyseme.load(tmp_path / "m")
    assert isinstance(model, Gpt) and model.window == 16
    assert model.perplexity(["the bank of rivers ."]).forward > 1
    assert config.fit(Corpus(text, workers=0), Run(seed=1), tmp_path / "m").steps == 12  # done already


def test_smallest_vocabulary() -> None:
    with pytest.raises(ConfigError, match="vocabulary_size is 256; allowed: 257 or more"):
        GptPretraining(vocabulary_size=256)
    assert len(train_bpe([["a"]], GptPretraining(vocabulary_size=257).vocabulary_size)) == 257
