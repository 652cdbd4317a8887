"""Multiple choice: a question read together with each choice."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.run import Run
from polyseme.tasks.choices import Choices
from polyseme.tasks.choices_config import ChoicesConfig
from polyseme.tasks.config import FeaturesConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.folder import load
from polyseme.text.labelled.choices import ChoiceQuestion, read_choices
from tests.encoders.small import elmo
from tests.encoders.small_subwords import gpt
from tests.tasks.test_contract import assert_same_answers
from tests.tasks.test_linear_head import FITTING, NOUNS, TUNED, calm_bert

QUESTIONS = [
    ChoiceQuestion(["the", word], tuple([each, "sat"] for each in some), some.index("bank"))
    for word in NOUNS[:3]
    for some in (["bank", "mat"], ["mat", "bank"], ["of", "money", "bank"], ["river", "bank", "of", "mat"])
]
"""The bank is always right."""


@pytest.mark.parametrize("make", [pytest.param(calm_bert, marks=pytest.mark.slow), gpt])
def test_the_right_one_is_learned(make, tmp_path: Path) -> None:
    config = ChoicesConfig(features=TUNED, dropout=0.0)
    outcome = fit(TaskBuilder(Choices, config, [make()]), Splits(QUESTIONS, QUESTIONS), tmp_path / "out", FITTING, Run(seed=1))
    assert outcome.scores["dev"] == {"accuracy": 1.0}
    asked = [("the river", ["mat", "bank"]), ("", ["of"]), ("the", [["bank"], "of", ""], "money")]
    found = outcome.task.predict(asked)
    assert found[1].probabilities == [1.0] and [len(each.probabilities) for each in found] == [2, 1, 3]
    assert_same_answers(load(tmp_path / "out").predict(asked), found, 1e-6)


def test_choices_share_one_softmax() -> None:
    """The loss is that of each question alone, by the plain definition."""
    torch.manual_seed(0)
    task = Choices.build(ChoicesConfig(features=FeaturesConfig(mode="frozen")), QUESTIONS, [gpt()]).eval()
    batch = task.prepare(task.data(QUESTIONS).gather([0, 3, 2]))
    with torch.no_grad():
        found, expected = float(task.loss(batch).total), 0.0
        for question in (QUESTIONS[0], QUESTIONS[3], QUESTIONS[2]):
            pairs = [(question.question, choice) for choice in question.choices]
            scores = task.network(task.network.encode(task.network.prepare(pairs), training=False))[:, 0]
            expected -= float(torch.log_softmax(scores, 0)[question.answer]) / 3
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("make", [calm_bert, gpt])
def test_a_long_context_loses_its_beginning_and_not_the_question(make) -> None:
    encoder = make()
    task = Choices.build(ChoicesConfig(features=FeaturesConfig(mode="frozen")), QUESTIONS, [encoder]).eval()
    context = ["river"] * 2 * encoder.window
    asked = [ChoiceQuestion(["the", word], (["mat"], ["of"]), 0, context=context) for word in ("bank", "money")]
    one, other = (task.prepare(task.data([each]).gather([0])).inputs[0].orders[0].ids for each in asked)
    assert one.shape == other.shape and not torch.equal(one, other)


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    first = '{"question": "Who sat?", "choices": ["cat", "mat"], "answer": 1, "context": "So."}\n\n'
    file.write_text(first + '{"question": "Who?", "choices": ["a", "b", "c"], "answer": "c", "id": 7}\n')
    found = read_choices(file)
    assert found == [
        ChoiceQuestion("Who sat?", ("cat", "mat"), 1, "So."),
        ChoiceQuestion("Who?", ("a", "b", "c"), 2),
    ]
    assert [each.where for each in found] == [1, 3]
    assert Choices.example_texts(found[0], str.split) == [["So.", "Who", "sat?"], ["cat"], ["mat"]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "has no questions"),
        ("question\tanswer", r"a.jsonl:1: is not JSON"),
        ("[1]", "is '.1.'; expected one JSON object"),
        ('{"choices": ["a", "b"], "answer": 0}', "has the question None; expected a string"),
        ('{"question": "q", "choices": ["a"], "answer": 0}', "a list of two or more strings"),
        ('{"question": "q", "choices": ["a", 1], "answer": 0}', "a list of two or more strings"),
        (
            '{"question": "q", "choices": ["a", "b"], "answer": 2}',
            "has the answer 2; expected the number of a choice, from 0",
        ),
        ('{"question": "q", "choices": ["a", "b"]}', "has the answer None"),
        ('{"question": "q", "choices": ["a", "b"], "answer": true}', "has the answer True"),
        ('{"question": "q", "choices": ["a", "b"], "answer": "c"}', "has the answer 'c', which equals 0 choices"),
        ('{"question": "q", "choices": ["a", "a"], "answer": "a"}', "which equals 2 choices"),
        ('{"question": "q", "choices": ["a", "b"], "answer": 0, "context": 5}', "has the context 5"),
    ],
)
def test_bad_files(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(FormatError, match=said):
        read_choices(tmp_path / "a.jsonl")


def test_asked_wrongly() -> None:
    task = Choices.build(ChoicesConfig(), QUESTIONS, [elmo()])
    for wrong in ("who", ("who", "cat"), ("who", []), ("who",)):
        with pytest.raises(UsageError, match="expected a question and its choices"):
            task.predict([wrong])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="a text is a string or a list of words; got None"):
        task.predict([("who", ["cat", None])])  # type: ignore[list-item]
    with pytest.raises(FormatError, match=r"a\.txt:3: has 2 texts"):
        task.parse_line("one\ttwo", "a.txt:3")
    with pytest.raises(FormatError, match="has 1 text;"):
        task.parse_line("one", "-")
    with pytest.raises(UsageError, match="some TEXTs have tabs and some have not"):
        task.lines_from_arguments(["w\ta\tb", "who"])
    assert task.lines_from_arguments(["who", "a", "b"]) == ["who\ta\tb"] and task.lines_from_arguments(["w\ta\tb"]) == [
        "w\ta\tb"
    ]
    assert task.parse_line("who sat\ta b\tc", "-", split_on_spaces=True) == (["who", "sat"], [["a", "b"], ["c"]])
    with pytest.raises(UsageError, match="1 of 1 questions have no answer"):
        task.score([ChoiceQuestion("a", ("b", "c"))], task.predict([("a", ["b", "c"])]))
    wrong = [ChoiceQuestion("a", ("b", "c"), place, where=4) for place in (0, 1)]
    (mistake,) = task.example_errors(wrong, task.predict([("a", ["b", "c"])] * 2), "a.jsonl")
    assert mistake.where == "a.jsonl:4" and mistake.text == "a"
    with pytest.raises(ConfigError, match="dropout is 1"):
        ChoicesConfig(dropout=1.0)
    with pytest.raises(ConfigError, match="give an encoder"):
        Choices.build(ChoicesConfig(), QUESTIONS, [])
