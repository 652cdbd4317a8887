"""Pruned n-gram models: as small as asked for, still distributions, and without the n-grams that matter least."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.config import ConfigError
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.ngram_table import Level, NgramTable
from polyseme.pretraining.kneser_ney import estimate
from polyseme.pretraining.ngram_config import NgramPretraining
from polyseme.pretraining.ngram_counts import count_ngrams
from polyseme.pretraining.ngram_pruning import prune
from tests.pretraining.test_ngram import random_text, trained


def longer(model: NgramModel) -> int:
    return sum(len(level) for level in model.table.levels[1:])


@pytest.mark.parametrize("smoothing", ["kneser-ney", "absolute"])
@pytest.mark.parametrize("seed", range(4))
def test_small_models_are_distributions(tmp_path: Path, seed: int, smoothing: str) -> None:
    text, draw = random_text(seed), random.Random(seed)
    full = trained(text, tmp_path, order=4, smoothing=smoothing)
    words = sorted({word for sentence in text for word in sentence})
    for limit in (longer(full) // 2, longer(full) // 5, 0):
        model = trained(text, tmp_path, order=4, smoothing=smoothing, max_ngrams=limit)
        assert 0.8 * limit - 3 <= longer(model) <= limit  # equal scores stay or go together
        assert not model.table.problems()
        for _ in range(10):
            context = [draw.choice([*words, "unheard"]) for _ in range(draw.randint(0, 4))]
            assert np.exp(model.distribution(context))[1:].sum() == pytest.approx(1, abs=1e-5)
        again = polyseme.load(model.save_pretrained(tmp_path / "m"))
        assert again.score(text).tolist() == model.score(text).tolist()


def test_with_room_for_all_it_is_the_same_model(tmp_path: Path) -> None:
    full = trained(random_text(1), tmp_path, order=3)
    assert trained(random_text(1), tmp_path, order=3, max_ngrams=longer(full)).table.difference(full.table) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_first_to_go_changes_the_distributions_least(seed: int) -> None:
    """Against the relative entropy to the model without each of its 2-grams, added up over all words."""
    draw, size = random.Random(seed), 9
    stream = np.array([i for _ in range(40) for i in (0, *(draw.randrange(3, size) for _ in range(draw.randrange(1, 6))), 1)])
    found = estimate(count_ngrams(stream.astype(np.int32), size, 2), size, "kneser-ney", (0, 0), keep_counts=True)
    table, total = found.table, len(found.table.levels[1])

    def without(row: int) -> float:
        context = int(table.levels[1].keys[row] // size)
        old = np.exp(table.distribution(np.array([context])))[1:]
        new = old.copy()
        inside = [int(key % size) - 1 for key in table.levels[1].keys if key // size == context]
        others = [place for place in range(size - 1) if place not in inside]
        others.append(int(table.levels[1].keys[row] % size) - 1)  # now by the lower order, as all others are
        lower = np.exp(table.levels[0].log_probs.astype(float))[1:]
        new[others] = lower[others] / lower[others].sum() * old[others].sum()
        return float(found.counts[0][context] * (old * np.log(old / new)).sum())

    kept = prune(table, found.counts, total - 1).levels[1].keys.tolist()
    gone = [without(row) for row in range(total) if table.levels[1].keys[row] not in kept]
    assert gone == pytest.approx([min(map(without, range(total)))] * len(gone)) and gone


def test_contexts_stay_with_what_follows_them() -> None:
    """A 2-gram that says nothing stays where a 3-gram that says much begins with it."""
    ones = Level(np.arange(5), np.log([1e-9, 0.2, 0.2, 0.3, 0.3]).astype(np.float32), np.zeros(5, dtype=np.float32))
    twos = Level(np.array([3 * 5 + 4, 4 * 5 + 3]), np.log([0.3, 0.31]).astype(np.float32), np.zeros(2, dtype=np.float32))
    threes = Level(np.array([0 * 5 + 3]), np.log([0.9]).astype(np.float32), np.zeros(1, dtype=np.float32))
    counts = [np.full(5, 100), np.array([50, 50]), np.array([40])]
    kept = prune(NgramTable(5, [ones, twos, threes]), counts, 2)
    assert [level.keys.tolist() for level in kept.levels] == [[0, 1, 2, 3, 4], [19], [3]]


def test_without_smoothing_it_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_ngrams needs smoothing='kneser-ney' or absolute: without smoothing"):
        NgramPretraining(smoothing="none", max_ngrams=100)
