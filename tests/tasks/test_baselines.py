"""Baselines beside a trained task: the most frequent class or tag, and simple models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyseme.base.run import Run
from polyseme.nn.config import CharactersConfig
from polyseme.tasks.baselines import MAJORITY, hidden_by_accuracy, is_no_better_than_prior, score_baselines
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import LabelPrediction
from polyseme.tasks.tagging import TaggedSentence, Tagging
from polyseme.tasks.tagging_config import TaggingConfig

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=4, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
TEXTS = [LabelledText(text, "pos") for text in ("good film", "good fun", "so good", "a good one")]
TEXTS += [LabelledText(text, "neg") for text in ("bad film", "so bad")]
DEV = [
    LabelledText("good", "pos"),
    LabelledText("bad bad", "neg"),
    LabelledText("bad", "neg"),
    LabelledText("a bad one", "neg"),
]


def classifier() -> Classification:
    return Classification.build(ClassificationConfig(hidden_size=4, features=FEATURES, wide=False), TEXTS)


def test_the_most_frequent_class_and_ngrams() -> None:
    task = classifier()
    found = score_baselines(task, TEXTS, {"dev": DEV, "test": DEV[:2]})
    assert found is not None and found["name"] == "n-grams with logistic regression"
    assert found[MAJORITY]["dev"]["accuracy"] == 0.25 and found[MAJORITY]["test"]["accuracy"] == 0.5
    more = [*TEXTS, *(LabelledText(f"bad {word}", "neg") for word in ("plot", "cast"))]
    balanced = score_baselines(task, more, {"dev": DEV})
    assert balanced is not None and balanced["dev"]["accuracy"] == 1.0


def test_a_network_that_is_no_better_than_one_answer_has_learned_nothing() -> None:
    task = classifier()
    for accuracy, nothing in ((0.0, True), (0.25, True), (0.5, False)):
        assert is_no_better_than_prior(task, TEXTS, DEV, task.predict_data(task.data(DEV)), {"accuracy": accuracy}) is nothing


@pytest.mark.parametrize(
    ("spam", "rare", "accuracy", "hidden"),
    [
        (0.3, 1, 0.9, "ham"),  # -(9 log 0.95 + log 0.3) = 1.67; frequencies: -(9 log 0.95 + log 0.05) = 3.46
        (0.3, 1, 0.8, "ham"),
        (0.05, 1, 0.9, ""),  # the frequencies
        (0.01, 1, 0.9, ""),  # worse
        (0.6, 1, 1.0, ""),  # better than one class for all
        (0.3, 3, 0.9, ""),  # 15 % are spam: accuracy can tell
    ],
)
def test_accuracy_cannot_tell_where_nearly_all_examples_have_one_class(
    spam: float, rare: int, accuracy: float, hidden: str
) -> None:
    task = classifier()
    train = [LabelledText(str(n), "spam" if n < rare else "ham") for n in range(20)]
    dev = [LabelledText(str(n), "spam" if n == 0 else "ham") for n in range(10)]
    outputs = [LabelPrediction("ham", 1 - p, {"spam": p, "ham": 1 - p}) for p in [spam] + [0.05] * 9]
    scores = {"accuracy": accuracy, "macro_f1": 0.3}
    assert hidden_by_accuracy(task, train, dev, outputs, scores) == hidden
    assert is_no_better_than_prior(task, train, dev, outputs, scores) is (not hidden and accuracy <= 0.9)
    macro = Classification.build(ClassificationConfig(hidden_size=4, features=FEATURES, wide=False, metric="macro_f1"), TEXTS)
    assert hidden_by_accuracy(macro, train, dev, outputs, scores) == ""


def test_the_most_frequent_tag_of_each_word() -> None:
    train = [
        TaggedSentence(["Ann", "left"], ["B-PER", "O"]),
        TaggedSentence(["May", "is", "May"], ["B-PER", "O", "O"]),
        TaggedSentence(["May", "left"], ["B-PER", "O"]),
    ]
    dev = [TaggedSentence(["May", "left", "Bob"], ["B-PER", "O", "B-PER"])]
    task = Tagging.build(TaggingConfig(hidden_size=4, features=FEATURES), train)
    found = score_baselines(task, train, {"dev": dev})
    assert found is not None and found["name"] == "most frequent tag of each word"
    scores = found["dev"]
    assert (scores["precision"], scores["recall"]) == (1.0, 0.5)  # a new word has the most frequent tag of all
    assert found[MAJORITY]["dev"]["recall"] == 0.0


def test_scores_have_a_baseline_too() -> None:
    pairs = [LabelledPair(f"a dog {n}", f"a {('dog', 'cat')[n % 2]}", str(5 * (n % 2))) for n in range(10)]
    task = Pairs.build(PairsConfig(hidden_size=4, features=FEATURES, goal="score", network="siamese", layers=0), pairs)
    found = score_baselines(task, pairs, {"dev": pairs})
    assert found is not None and found["dev"]["pearson"] > 0.9
    outputs = task.predict_data(task.data(pairs))
    assert is_no_better_than_prior(task, pairs, pairs, outputs, {"pearson": 0.1}) is False
    assert is_no_better_than_prior(task, pairs, pairs, outputs, {"pearson": -0.1}) is True


def test_the_result_has_them(tmp_path: Path) -> None:
    builder = TaskBuilder(Classification, ClassificationConfig(hidden_size=4, features=FEATURES))
    fit(builder, Splits(TEXTS, DEV, DEV[:2]), tmp_path / "out", FitConfig(epochs=1), Run(seed=1))
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    baseline = result["baseline"]
    assert set(baseline) == {"name", "dev", "test", MAJORITY} and set(baseline[MAJORITY]) == {"dev", "test"}
    assert baseline[MAJORITY]["dev"]["accuracy"] == pytest.approx(0.25)
