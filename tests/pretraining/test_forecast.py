"""The forecast of a training: its numbers against those of a real run, and its made-up text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.base.run import Run
from polyseme.pretraining import forecast as module
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.pretraining.forecast import forecast, synthetic_shards
from polyseme.text.corpus import Corpus
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig


def config(**changes: object) -> ElmoPretraining:
    return ElmoPretraining(size="tiny", batch_words=256, vocabulary_size=200, train=TrainConfig(epochs=2.0)).replace(**changes)


@pytest.mark.slow
def test_against_a_real_run(tmp_path: Path) -> None:
    """Parameters and files as a run has them; time and memory within reason."""
    line = " ".join(f"w{number}" for number in range(150))
    (tmp_path / "t.txt").write_text(f"{line}\n" * 20, encoding="utf-8")
    corpus = Corpus(tmp_path / "t.txt", splitter="whitespace", sentences="lines", workers=0)
    result = config().fit(corpus, Run(), tmp_path / "m")
    found = forecast(config(), words=3000, vocabulary=150, sentences=20, run=Run(), limit=2.0)
    import polyseme

    model = polyseme.load(tmp_path / "m")
    assert found.parameters == sum(weight.numel() for weight in model.parameters())
    weights = 4 * found.parameters
    assert 4 * weights < found.memory_bytes < 4 * weights + (1 << 26)
    files = sum(file.stat().st_size for file in (tmp_path / "m").rglob("*") if file.is_file())
    assert 0.7 * files < found.disk_bytes < 2.5 * files
    assert found.seconds == pytest.approx(2 * 3000 / found.words_per_second)
    assert 0.02 < found.seconds / result.seconds < 50


def test_budgets_and_optimizers() -> None:
    made = {}
    for name in ("adamw", "adagrad"):
        train = TrainConfig(minutes=3.0, optim=OptimConfig(optimizer=name))  # type: ignore[arg-type]
        made[name] = forecast(config(train=train), 10_000, 500, 500, Run(), limit=0.2)
        assert made[name].seconds == 180
    # one number more for each weight in each of three checkpoints
    assert made["adamw"].disk_bytes - made["adagrad"].disk_bytes == 3 * 4 * made["adamw"].parameters
    words = forecast(config(train=TrainConfig(words=50_000)), 10_000, 500, 500, Run(), limit=0.2)
    assert words.seconds == pytest.approx(50_000 / words.words_per_second)
    steps = forecast(config(train=TrainConfig(steps=7)), 10_000, 500, 500, Run(), limit=0.2)
    assert steps.seconds > 0


def test_a_slow_machine_stops_at_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def slow(stepper: object, run: Run) -> tuple[int, float]:
        calls.append(1)
        return 16, 30.0

    monkeypatch.setattr(module, "_timed", slow)
    found = forecast(config(), 10_000, 500, 500, Run(), limit=20.0)
    assert len(calls) == 1 and found.words_per_second == pytest.approx(16 / 30)


def test_made_up_text() -> None:
    """Sentences of the mean length, words by Zipf's law, each spelled in its own way."""
    shards = synthetic_shards(config(batch_words=2048), words=100_000, vocabulary=5000, sentences=5000)
    lengths = np.diff(shards.offsets)
    assert lengths.min() >= 1 and lengths.mean() == pytest.approx(20, rel=0.1)
    assert len(set(shards.types)) == len(shards.types) == 5003 == len(shards.counts)
    assert shards.words.min() == 3 and shards.words.max() < 5003 and shards.counts.sum() == shards.total
    share = shards.counts[3:] / shards.total
    assert share[0] == pytest.approx(np.log(2) / np.log(5001), rel=0.1) and share[9:99].sum() > 10 * share[4000:4090].sum()
