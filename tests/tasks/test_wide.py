"""The wide part of a network: cross-fitted scores, and that it is saved with the task."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.nn.config import CharactersConfig
from polyseme.tasks import wide
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.folder import load
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.sparse_features import FeatureHasher
from polyseme.tasks.wide import WidePart, fit_wide, hash_examples, weighting_of

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=4, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
CONFIG = ClassificationConfig(hidden_size=4, features=FEATURES)


def labelled(count: int) -> list[LabelledText]:
    source, found = random.Random(1), []
    for number in range(count):
        words = [*source.choices(["the", "a", "film", "plot", "of", "and", "it", "was"], k=4), ("good", "bad")[number % 2]]
        found.append(LabelledText(" ".join(source.sample(words, k=5)) + f" {number}", ("pos", "neg")[number % 2]))
    return found


def targets_of(examples: list[LabelledText]) -> np.ndarray:
    return np.array([int(example.label == "pos") for example in examples])


def test_scores_come_from_models_without_the_text() -> None:
    examples = [*labelled(30), LabelledText("odd words", "pos"), LabelledText("odd words", "neg")]
    texts, targets = [(example.text,) for example in examples], targets_of(examples)
    fitted = fit_wide(texts, targets, 2)
    right = (fitted.cross_fitted.argmax(1) == targets)[:30].mean()
    assert right > 0.8  # from the other texts
    assert np.array_equal(fitted.cross_fitted[30], fitted.cross_fitted[31])  # equal texts share a part
    # nor do words that no other text has count, whatever their label
    unknown = [*labelled(30), LabelledText("xyz", "pos"), LabelledText("xyz", "pos")]
    scores = fit_wide([(each.text,) for each in unknown], targets_of(unknown), 2).cross_fitted
    assert abs(scores[30, 1] - scores[30, 0]) < 0.5 * np.abs(scores[:30, 1] - scores[:30, 0]).max()


def test_a_label_does_not_change_the_score_of_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "PENALTIES", (1.0,))  # of several, one is chosen for all by the labels of one part
    # all texts of a part are equal, so that another label cannot move texts to other parts
    texts = [(text,) for text in ("good fun", "bad plot", "good cast", "bad idea", "dull thing") for _ in range(4)]
    targets = np.array([1] * 4 + [0] * 4 + [1] * 4 + [0] * 8)
    before = fit_wide(texts, targets, 2).cross_fitted
    changed = targets.copy()
    changed[1] = 0
    after = fit_wide(texts, changed, 2).cross_fitted
    np.testing.assert_allclose(after[:4], before[:4], atol=1e-6)
    assert not np.allclose(after[4:], before[4:], atol=1e-3)


def test_training_reads_cross_fitted_scores_and_prediction_the_whole_model() -> None:
    examples = labelled(20)
    task = Classification.build(CONFIG, examples)
    assert task.wide is not None and task.config.wide and task.config.wide_features == len(task.wide.ids) > 0
    texts = [(example.text,) for example in examples]
    batch = task.prepare(task.data(examples).gather(range(20)))
    assert not torch.allclose(batch.targets.wide, task.wide.scores(texts), atol=1e-2)
    new = [("a good plot",), ("",)]
    torch.testing.assert_close(task.wide.cross_fitted(new), task.wide.scores(new))  # dev data


@pytest.mark.parametrize("goal", ["text", "classes", "score"])
def test_a_saved_task_predicts_the_same(goal: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    if goal == "text":
        task, asked = Classification.build(CONFIG, labelled(12)), ["a good film", "bad", "", "好"]
    else:
        pairs = [LabelledPair(f"a dog {n}", f"a {('dog', 'cat')[n % 2]}", str(n % 2)) for n in range(12)]
        config = PairsConfig(hidden_size=4, features=FEATURES, goal=goal, network="siamese", layers=0)
        task, asked = Pairs.build(config, pairs), [("a dog", "a dog"), ("a cat", ""), ("x", "y")]
    with torch.no_grad():
        task.wide.scale.fill_(0.5)
    before = task.eval().predict(asked)
    task.save(tmp_path / "task")
    after = load(tmp_path / "task")
    assert after.wide is not None
    if goal == "score":
        assert [each.score for each in after.predict(asked)] == pytest.approx([each.score for each in before], abs=1e-6)
        return
    for now, then in zip(after.predict(asked), before, strict=True):
        assert now.probabilities == pytest.approx(then.probabilities, abs=1e-6)


def test_scores_follow_the_weights() -> None:
    examples = labelled(12)
    first, second = Classification.build(CONFIG, examples), Classification.build(CONFIG, examples)
    asked = [("a good film",)]
    expected = first.wide.scores(asked)
    with torch.no_grad():
        second.wide.weights.zero_()
        assert second.wide.scores(asked)[0].tolist() == pytest.approx(second.wide.bias.tolist())
    second.load_state_dict(first.state_dict())  # as a run that is resumed
    torch.testing.assert_close(second.wide.scores(asked), expected)


def test_dropout_takes_the_scores_of_whole_examples() -> None:
    torch.manual_seed(0)
    part, scores = WidePart(4, 3, dropout=0.5), torch.ones(200, 3)
    kept = part(scores).mean(dim=1)
    assert set(kept.tolist()) == {0.0, 1.0} and 60 < kept.sum() < 140
    assert torch.equal(part.eval()(scores), scores)


def test_without_a_wide_part() -> None:
    examples = labelled(12)
    task = Classification.build(CONFIG.replace(wide=False, wide_features=7), examples)
    assert task.wide is None and task.config.wide_features == 0
    assert not any(name.startswith("wide") for name in task.state_dict())
    assert task.prepare(task.data(examples).gather([0, 1])).targets.wide is None
    words = [LabelledText(["good", "film"], "pos"), LabelledText(["bad"], "neg")]  # phrases of trees
    assert Classification.build(CONFIG, words).wide is None


def test_many_classes_of_few_examples_are_told_by_their_rare_words():
    source = np.random.default_rng(0)
    words = [f"word{number}" for number in range(400)]

    def texts(each):
        return [(" ".join([*source.choice(words[:60], 12), *source.choice(words, 4), f"topic{name}"]),) for name in each]

    names = np.repeat(np.arange(50), 3)
    fit = fit_wide(texts(names), names, 50)
    rows = hash_examples(FeatureHasher(fit.longest), texts(range(50)))
    assert np.mean(fit.model.scores(rows).argmax(1).numpy() == np.arange(50)) > 0.9
    assert np.mean(fit.cross_fitted.argmax(1) == names) > 0.7


def test_pairs_and_many_examples_have_the_usual_weights() -> None:
    one, two = [(["a", "b"],)], [(["a"], ["b"])]
    assert weighting_of(one * 59, 2) == "nb-idf" and weighting_of(one * 60, 2) == "nb"
    assert weighting_of(two * 59, 2) == "nb" and weighting_of(one * 59, 1) == "nb"
