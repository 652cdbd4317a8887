"""Roles: they are learned by the predicate, tags are legal, and arguments count as the CoNLL-2005 scorer counts them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.run import Run
from polyseme.metrics.spans import spans
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.folder import load
from polyseme.tasks.predictions import SentenceRoles
from polyseme.tasks.roles import RoleExample, Roles, arguments
from polyseme.tasks.roles_config import RolesConfig
from polyseme.text.labelled.roles import Predicate
from polyseme.training.optim_config import OptimConfig

SMALL = RolesConfig(
    hidden_size=16,
    layers=2,
    dropout=0.0,
    predicate_dim=8,
    features=FeaturesConfig(words=TaskWordConfig(dim=12, characters=None)),
)
QUICK = FitConfig(batch_size=8, epochs=24, patience=24, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0, warmup=0.0))
NAMES = ["Anna", "Omar", "Lena", "Igor"]
SAW, LEAVE = ["B-A0", "B-V", "B-A1", "I-A1"], ["O", "O", "B-A0", "B-V"]


def examples() -> list[RoleExample]:
    """The same words, other roles: they depend on the predicate alone."""
    texts = [[one, "saw", other, "leave"] for one in NAMES for other in NAMES]
    return [RoleExample(words, place, tags) for words in texts for place, tags in ((1, SAW), (3, LEAVE))]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Roles:
    out = tmp_path_factory.mktemp("run")
    outcome = fit(TaskBuilder(Roles, SMALL), Splits(examples(), examples(), examples()), out, QUICK, Run(seed=1))
    assert outcome.scores["test"] == {"f1": 1.0, "precision": 1.0, "recall": 1.0, "perfect": 1.0}
    return load(out)  # type: ignore[return-value]


def test_the_predicate_decides(trained: Roles) -> None:
    words = ["Omar", "saw", "Lena", "leave"]
    (found,) = trained.predict([("Omar saw Lena leave", [1, 3])])
    assert found == SentenceRoles(words, [Predicate(1, SAW), Predicate(3, LEAVE)])
    assert trained.predict([(words, [3]), ([], []), (words, [])]) == [
        SentenceRoles(words, [Predicate(3, LEAVE)]), SentenceRoles([], []), SentenceRoles(words, [])
    ]  # fmt: skip


def assert_legal(tags: list[str]) -> None:
    for begin, end, kind in spans(tags):
        assert tags[begin:end] == [f"B-{kind}"] + [f"I-{kind}"] * (end - begin - 1)


@pytest.mark.parametrize("crf", [False, True])
def test_tags_are_always_legal(crf: bool) -> None:
    """Also of a network that has learned nothing, whose scores are noise."""
    torch.manual_seed(2)
    task = Roles.build(SMALL.replace(crf=crf), examples())
    with torch.no_grad():
        task.scores.weight.normal_(std=5.0)
    source = random.Random(0)
    texts = [([source.choice(NAMES) for _ in range(length)], [length // 2]) for length in range(1, 30)]
    found = [one for sentence in task.predict(texts) for one in sentence.predicates]
    assert [len(one.tags) for one in found] == list(range(1, 30))
    for one in found:
        assert_legal(one.tags)
    assert any(tag[0] == "I" for one in found for tag in one.tags)


@pytest.mark.slow
def test_moves_are_learned_only_with_a_crf(tmp_path: Path) -> None:
    for crf in (False, True):
        task = fit(
            TaskBuilder(Roles, SMALL.replace(crf=crf)), Splits(examples(), examples()), tmp_path / str(crf), QUICK, Run()
        ).task
        assert isinstance(task, Roles) and bool(task.crf.transitions.any()) is crf
        assert task.score(examples(), task.predict_data(task.data(examples())))["f1"] == 1.0


# ---- the score, by hand


def test_arguments_without_the_predicate() -> None:
    assert arguments(["B-A0", "I-A0", "B-V", "O", "B-A1"]) == {("A0", ((0, 2),)), ("A1", ((4, 5),))}
    assert arguments(["B-V", "I-V", "O", "B-C-V"]) == set()  # what continues the predicate is no argument either
    assert arguments([]) == set()


def test_continued_arguments_are_one() -> None:
    assert arguments(["B-A1", "B-V", "B-C-A1", "O", "B-C-A1"]) == {("A1", ((0, 1), (2, 3), (4, 5)))}
    # it continues the last of its role; another role is not touched
    assert arguments(["B-A1", "B-A1", "B-C-A1", "B-A2"]) == {("A1", ((0, 1),)), ("A1", ((1, 2), (2, 3))), ("A2", ((3, 4),))}
    # without one before it, it is an argument itself, which the next continues
    assert arguments(["B-C-A1", "B-V", "B-C-A1"]) == {("A1", ((0, 1), (2, 3)))}
    assert arguments(["B-C-A1", "B-V", "B-A1"]) == {("A1", ((0, 1),)), ("A1", ((2, 3),))}


def test_references_are_arguments_of_their_own() -> None:
    assert arguments(["B-A0", "B-R-A0", "B-V", "B-C-R-A0"]) == {("A0", ((0, 1),)), ("R-A0", ((1, 2), (3, 4)))}


GOLD = ["B-A1", "I-A1", "B-R-A1", "B-V", "B-C-A1", "B-AM-TMP"]


@pytest.mark.parametrize(("answer", "tally"), [
    (GOLD, [3, 3, 3]),
    (["B-A1", "I-A1", "B-R-A1", "B-V", "O", "B-AM-TMP"], [2, 3, 3]),  # a piece is missing: the whole is wrong
    (["B-A1", "I-A1", "B-R-A1", "B-V", "B-A1", "B-AM-TMP"], [2, 4, 3]),  # two arguments instead of one
    (["B-A1", "I-A1", "B-A1", "B-V", "B-C-A1", "B-AM-TMP"], [1, 3, 3]),  # no reference, and its A1 takes the piece
    (["B-A1", "I-A1", "B-R-A1", "O", "B-C-A1", "B-V"], [2, 2, 3]),  # V neither counts nor is missed
    (["O"] * 6, [0, 0, 3]),
])  # fmt: skip
def test_tallies(trained: Roles, answer: list[str], tally: list[int]) -> None:
    example = RoleExample([*"abcdef"], 3, GOLD)
    assert trained.score_counts([example], [answer]).tolist() == [tally]
    right, predicted, gold = tally
    scores = trained.score([example], [answer])
    assert scores["f1"] == pytest.approx(2 * right / (predicted + gold)) and scores["perfect"] == (tally == [3, 3, 3])


def test_scores_are_over_all_predicates(trained: Roles) -> None:
    some = [
        RoleExample([*"abcdef"], 3, GOLD),
        RoleExample(["a", "b"], 0, ["B-V", "O"]),
        RoleExample(["a", "b"], 0, ["B-V", "B-A1"]),
    ]
    answers = [["O"] * 6, ["B-V", "O"], ["B-V", "B-A1"]]
    assert trained.score_counts(some, answers).tolist() == [[0, 0, 3], [0, 0, 0], [1, 1, 1]]
    assert trained.score(some, answers) == {"f1": 0.4, "precision": 1.0, "recall": 0.25, "perfect": pytest.approx(2 / 3)}
    assert trained.score([], []) == {"f1": 0.0, "precision": 0.0, "recall": 0.0, "perfect": 0.0}


# ---- data


def test_from_a_file_to_a_report(trained: Roles, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Omar - (A0*) *\nsaw see (V*) *\nLena - (A1* (AX*)\nleave leave *) (V*)\n\nOh -\n", encoding="utf-8")
    assert Roles.read(file, SMALL) == [RoleExample(["Omar", "saw", "Lena", "leave"], place, tags) for place, tags in (
        (1, SAW), (3, ["O", "O", "B-AX", "B-V"])
    )]  # fmt: skip
    found = trained.error_report(file)
    assert found.examples == 2 and found.scores["f1"] == pytest.approx(2 / 3)
    assert [str(each) for each in found.unknown_labels] == [f"{file}:3: has the label 'AX'"]
    assert found.confused(5) == [("AX", "A0", 1)] and found.worst[0].where == f"{file}:4"
    assert found.worst[0].text == "Omar saw Lena [leave]"
    file.write_text("Oh -\n")
    with pytest.raises(FormatError, match="but no predicates"):
        Roles.read(file, SMALL)


def test_refusals(trained: Roles) -> None:
    for question in ("Ann saw Bob", ("Ann saw Bob", 1), (["Ann", "saw", "Bob"],), (["Ann"], "0")):
        with pytest.raises(UsageError, match="positions of its predicates"):
            trained.predict([question])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="no word 3 in"):
        trained.predict([(["Ann", "saw", "Bob"], [1, 3])])
    for place in ("1", 1.7, True, None):
        with pytest.raises(UsageError, match="as the position of a predicate; expected a whole number, from 0"):
            trained.predict([("Ann saw Bob", [place])])  # type: ignore[list-item]
    assert trained.predict([("Ann saw Bob", np.array([1]))]) == trained.predict([("Ann saw Bob", [1])])
    with pytest.raises(ConfigError, match="predicate_dim is 0"):
        RolesConfig(predicate_dim=0)
    with pytest.raises(ConfigError, match="between"):
        RolesConfig(features=FeaturesConfig(positions=("between",)))
    with pytest.raises(ConfigError, match="do not apply to roles"):
        RolesConfig(column="1")
