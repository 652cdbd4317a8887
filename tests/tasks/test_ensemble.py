"""Classifiers that predict together: means of probabilities and scores."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import polyseme
from polyseme.base.errors import UsageError
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.ensemble import combine_tasks
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=4), dropout=0)
TEXTS = ["a good film", "bad", "neither of both"]


def classifier(seed: int, labels: tuple[str, ...] = ("good", "bad")) -> Classification:
    torch.manual_seed(seed)
    examples = [LabelledText(f"a {label} film {number}", label) for number in range(6) for label in labels]
    return Classification.build(ClassificationConfig(hidden_size=4, features=FEATURES), examples).eval()


def test_the_mean_of_probabilities(tmp_path: Path) -> None:
    tasks = [classifier(seed) for seed in (1, 2, 3)]
    alone = [task.predict(TEXTS) for task in tasks]
    for number, task in enumerate(tasks):
        task.save(tmp_path / f"task{number}")
    together = polyseme.load_task("+".join(str(tmp_path / f"task{number}") for number in range(3)))
    for number, output in enumerate(together.predict(TEXTS)):
        for label in ("good", "bad"):
            mean = sum(each[number].probabilities[label] for each in alone) / 3
            assert output.probabilities[label] == pytest.approx(mean, abs=1e-6)
        assert output.probability == max(output.probabilities.values()) == output.probabilities[output.label]
    (tmp_path / "test.tsv").write_text("text\tlabel\na good film\tgood\nbad\tbad\n", encoding="utf-8")
    assert polyseme.evaluate(together, tmp_path / "test.tsv").examples == 2
    with pytest.raises(UsageError, match="save each of them"):
        together.save(tmp_path / "all")


def test_the_mean_of_scores() -> None:
    pairs = [LabelledPair(f"a dog {n}", f"a {('dog', 'cat')[n % 2]}", str(n % 2)) for n in range(12)]
    config = PairsConfig(hidden_size=4, features=FEATURES, goal="score", network="siamese", layers=0)
    tasks = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        tasks.append(Pairs.build(config, pairs).eval())
    alone = [task.predict([("a dog", "a cat")])[0].score for task in tasks]
    assert combine_tasks(tasks).predict([("a dog", "a cat")])[0].score == pytest.approx(sum(alone) / 2)


def test_tasks_that_do_not_fit_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="with the same labels"):
        combine_tasks([classifier(1), classifier(1, ("good", "bad", "fair"))])
    classifier(1).save(tmp_path / "a+b")  # a folder with a + in its name is one task
    assert polyseme.load_task(tmp_path / "a+b").others == ()
