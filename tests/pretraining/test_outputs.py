"""Pre-training with each output layer: what may be combined, the published tiny training set, and a run with a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.run import Run
from polyseme.encoders.elmo import Elmo
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, TiedSoftmax
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.elmo_job import build
from polyseme.text.batching.stream import SentenceBatches
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig
from tests.golden_path import golden

OUTPUTS: dict[str, tuple[type, dict[str, Any]]] = {
    "tied words": (TiedSoftmax, {"input": "words", "tied": True}),
    "tied both": (TiedSoftmax, {"input": "both", "tied": True}),
    "sampled": (FullSoftmax, {"output": "sampled", "negatives": 12}),
    "sampled tied": (TiedSoftmax, {"input": "words", "output": "sampled", "negatives": 12, "tied": True}),
    "adaptive": (AdaptiveSoftmax, {"output": "adaptive"}),
    "tied transformer": (TiedSoftmax, {"input": "both", "tied": True, "architecture": "transformer"}),
}


def published() -> Corpus:
    return Corpus(golden("bilm-tf-train") / "data.txt", splitter="whitespace", sentences="lines", workers=0)


@pytest.mark.slow  # a Transformer meets this bar in every run of the tests, in test_elmo
@pytest.mark.parametrize("name", OUTPUTS)
def test_published_training_set(tmp_path: Path, name: str) -> None:
    """bilm-tf's own bar: a perplexity under 20 on its tiny text after 50 epochs, by the full distribution."""
    kind, settings = OUTPUTS[name]
    shards = Shards.build(published(), tmp_path)
    torch.manual_seed(0)
    config = ElmoPretraining(size="tiny", vocabulary_size=33, dropout=0.0, **settings)
    learner = ElmoObjective(build(shards, config, published()), shards, dropout=0.0, negatives=config.samples)
    assert type(learner.model.output) is kind
    batches = SentenceBatches(shards, range(len(shards)), batch_words=120)
    before = learner.evaluate(batches.in_order())["perplexity"]
    assert before < 2 * 33  # as if it knew nothing: about one in 33
    optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
    for _, batch in zip(range(50 * len(batches.plan(0))), batches, strict=False):
        optimizer.zero_grad()
        loss = learner.loss(learner.prepare(batch))
        loss.total.backward()
        assert all(weight.grad is not None for weight in learner.parameters())
        optimizer.step()
    assert loss.sampled is name.startswith("sampled")
    assert learner.evaluate(batches.in_order())["perplexity"] < 20


@pytest.mark.parametrize("name", [pytest.param("tied both", marks=pytest.mark.slow), "adaptive"])
def test_a_run_and_its_restart(tmp_path: Path, name: str) -> None:
    kind, settings = OUTPUTS[name]
    (tmp_path / "text.txt").write_text("the cat sat on a mat .\na dog saw the river bank .\n" * 40, encoding="utf-8")
    corpus = Corpus(tmp_path / "text.txt", splitter="whitespace", sentences="lines", workers=0)
    train = TrainConfig(steps=12, eval_every=4, checkpoint_every=3, optim=OptimConfig(learning_rate=1e-2))
    config = ElmoPretraining(size="tiny", vocabulary_size=33, batch_words=120, bptt=5, train=train, **settings)
    expected = config.fit(corpus, Run(seed=1), tmp_path / "m")
    for newest in sorted((tmp_path / "m" / "run").glob("checkpoint-*"))[-2:]:
        newest.unlink()  # as if it had been killed before its last checkpoint
    found = config.fit(corpus, Run(seed=1), tmp_path / "m")
    assert found.scores == expected.scores and (tmp_path / "m" / "run" / "checkpoint-00000012.json").exists()
    model = polyseme.load(tmp_path / "m")
    assert isinstance(model, Elmo) and type(model.output) is kind
    if isinstance(model.output, TiedSoftmax):
        assert model.tokens.words is not None and model.output.weight is model.tokens.words.weight


def test_sizes_of_the_table() -> None:
    assert ElmoPretraining(input="both").encoder_config(9).words.dim == 100  # type: ignore[union-attr]
    assert ElmoPretraining(input="both", word_dim=7).encoder_config(9).words.dim == 7  # type: ignore[union-attr]
    assert ElmoPretraining(input="both", size="medium", tied=True).encoder_config(9).words.dim == 256  # type: ignore[union-attr]
    assert ElmoPretraining(input="words", size="medium", tied=True, word_dim=256).tied
    assert ElmoPretraining(output="sampled").samples == 8192 and ElmoPretraining().samples is None
    assert ElmoPretraining(negatives=5).samples == 5


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tied": True}, "tied=True needs a word table: give input words or both"),
        ({"tied": True, "input": "words", "output": "adaptive"}, "an adaptive output has no row for each word"),
        (
            {"tied": True, "input": "both", "word_dim": 100},
            "word_dim is 100; allowed with tied=True: 128, the size of the output",
        ),
        ({"negatives": 5, "output": "full"}, "negatives=5 needs output='sampled', not full"),
        ({"negatives": 0, "output": "sampled"}, "negatives is 0; allowed: 1 or more"),
        ({"word_dim": 0}, "word_dim is 0; allowed: 1 or more"),
    ],
)
def test_what_cannot_be_combined(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ElmoPretraining(**settings)
