"""Readers: what they read, where answers stand, several and long paragraphs, what they refuse, and that they learn."""

from __future__ import annotations

import json
import logging
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError
from polyseme.base.run import Run
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.config import CharactersConfig
from polyseme.nn.networks.bidaf import AnswerScores
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.fit import Splits, TaskBuilder, fit
from polyseme.tasks.fit_config import FitConfig
from polyseme.tasks.predictions import Answer
from polyseme.tasks.reading import Reading
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.text.labelled.squad import AnswerSpan, ReadingQuestion
from polyseme.text.words import get_splitter
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import elmo

FEATURES = FeaturesConfig(words=TaskWordConfig(dim=10, characters=CharactersConfig(dim=4, filters=((2, 5),), highway_layers=0)))
TEXT = "Ann can’t say “no”  to Bob."


def small(**changes: Any) -> ReadingConfig:
    return ReadingConfig(**({"hidden_size": 8, "features": FEATURES} | changes))


def asked(text: str, *answers: str, question: str = "Who ?") -> ReadingQuestion:
    """With the first place of each answer."""
    spans = [AnswerSpan(0, text.index(answer), text.index(answer) + len(answer)) for answer in answers]
    return ReadingQuestion(question, (text,), answers, tuple(spans))


def built(examples: list[ReadingQuestion], cut: str = "english", **changes: Any) -> Reading:
    torch.manual_seed(0)
    return Reading.build(small(**changes), examples, splitter=get_splitter(cut)).eval()


class Fixed(torch.nn.Module):
    """A network whose scores are given: for each paragraph, for each word."""

    def __init__(self, start: list[list[float]], end: list[list[float]], none: list[float] | None = None) -> None:
        super().__init__()
        self.given = start, end, none

    def forward(self, vectors: Any, masks: Any, *others: Any) -> AnswerScores:
        start, end = (torch.full(masks[1].shape, MASKED_SCORE) for _ in range(2))
        for scores, given in ((start, self.given[0]), (end, self.given[1])):
            for row, numbers in enumerate(given):
                scores[row, : len(numbers)] = torch.tensor(numbers)
        return AnswerScores(start, end, None if self.given[2] is None else torch.tensor(self.given[2]))


# ---- reading


def write(path: Path, *rows: tuple[str, list[tuple[str, int]]]) -> Path:
    paragraphs = [
        {"context": text, "qas": [{"question": "Who ?", "answers": [{"text": a, "answer_start": b} for a, b in answers]}]}
        for text, answers in rows
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def test_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path / "a.json", ("It is Ann.", [("Ann", 3)]), ("It is Bob.", [("Tom", 6)]), ("Nobody.", []))
    with caplog.at_level(logging.WARNING):
        assert [example.answers for example in Reading.read(file, small())] == [("Ann",), ("Tom",), ()]
    assert "1 of 2 answers are not at their answer_start, and were found elsewhere (the first: data[0]." in caplog.text
    assert "1 of 2 answers are not in their paragraphs: they count in scores, but not in training" in caplog.text
    assert "left out" not in caplog.text
    learned = Reading.read(file, small(), training=True)
    assert [example.answers for example in learned] == [("Ann",), ()] and learned[0].spans == (AnswerSpan(0, 6, 9),)
    assert "skipped 1 of 3 questions, without an answer to train on" in caplog.text
    with pytest.raises(FormatError, match="has no question to train on: none of 1 answers is in its paragraph"):
        Reading.read(write(tmp_path / "b.json", ("It is Bob.", [("Tom", 6)])), small(), training=True)
    (tmp_path / "c.json").write_text('{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "Who?"}]}]}]}')
    with pytest.raises(FormatError, match=r"c.json: 1 of 1 questions have no 'answers', such as 'Who\?'"):
        Reading.read(tmp_path / "c.json", small())


# ---- configs


def test_configs_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"max_answer_length is 0; .*; hidden_size is 0; .*; dropout is 1.0"):
        small(hidden_size=0, dropout=1.0, max_answer_length=0)
    with pytest.raises(ConfigError, match=r"only taggers and generation have 'between'"):
        small(features=FEATURES.replace(positions=("between",)))
    config = small(rules="cmrc", allow_no_answer=True)
    assert ReadingConfig.from_dict(config.to_dict()) == config


def test_what_the_training_data_settles() -> None:
    english, chinese, none = asked("Ann ran", "Ann"), asked("他在北京", "北京"), ReadingQuestion("Who?", ("x",), ())
    for examples, rules, no_answer in (
        ([english], "squad", False),
        ([english, none], "squad2", True),
        ([chinese, none], "cmrc", True),
        ([chinese, english, english], "squad", False),
    ):
        task = built(examples)
        assert (task.rules, task.config.allow_no_answer) == (rules, no_answer)
        assert task.labels == (["answer", "no answer"] if no_answer else ["answer"])
    assert built([english], allow_no_answer=True, rules="squad2").network.none is not None
    with pytest.raises(ConfigError, match="1 training questions have no answer: omit allow_no_answer=False"):
        built([english, none], allow_no_answer=False)
    with pytest.raises(UsageError, match=r"1 of 2 questions have answers without spans, such as 'Who\?'"):
        built([english, ReadingQuestion("Who?", ("Ann",), ("Tom",))])
    with pytest.raises(UsageError, match="1 of 1 questions have no answers"):
        built([ReadingQuestion("Who?", ("Ann",))])
    (strange,) = Reading.unknown_labels([none], built([english]).labels, small(), "dev.json")
    assert strange.label == "no answer"


# ---- places


@pytest.mark.parametrize(
    ("text", "cut", "answer", "words", "given"),
    [
        (TEXT, "english", "“no”", (4, 6), "“no”"),
        (TEXT, "english", "can", (1, 1), "ca"),  # a word is never cut: the answer is its first part, n’t the second
        (TEXT, "english", "no”  to Bob", (5, 8), "no”  to Bob"),
        (TEXT, "whitespace", "no", (3, 3), "“no”"),
        ("《战国无双3》在 2009年", "characters", "2009", (8, 8), "2009"),
        ("《战国无双3》在 2009年", "characters", "战国", (1, 2), "战国"),
        ("他在北京市长大", "characters", "北京", (2, 3), "北京"),
    ],
)
def test_answers_are_cut_from_the_text(text: str, cut: str, answer: str, words: tuple[int, int], given: str) -> None:
    example = asked(text, answer)
    task = built([example], cut)
    batch = task.data([example]).gather([0])
    found = {place for _, *places in batch.examples[0].gold for place in places}
    assert (min(found), max(found)) == words or answer == "can"
    count = len(batch.texts[1][0])
    task.network = Fixed(
        [[9.0 * (place == words[0]) for place in range(count)]], [[9.0 * (place == words[1]) for place in range(count)]]
    )
    (answered,) = task.predict([("Who ?", text)])
    assert answered.text == given and answered.span is not None
    assert text[answered.span.begin : answered.span.end] == given and answered.label == "answer"


def test_words_as_they_are_given() -> None:
    task = built([asked(TEXT, "Ann")])
    task.network = Fixed([[0.0, 9.0, 0.0]], [[0.0, 0.0, 9.0]])
    (answer,) = task.predict([(["Who", "?"], [["New York", "is", "big"]])])
    assert (answer.text, answer.span) == ("is big", AnswerSpan(0, 9, 15))
    (answer,) = task.predict([("谁", [["他", "在", "北京"]])])
    assert (answer.text, answer.span) == ("在北京", AnswerSpan(0, 1, 4))


# ---- several paragraphs, none, long ones


def test_paragraphs_are_scored_together() -> None:
    task = built([asked(TEXT, "Ann")], max_answer_length=2)
    task.network = Fixed([[1.0, 0.0], [0.0], [3.0, 0.0, 0.0], [1.0]], [[0.0, 0.0], [2.0], [0.0, 0.0, 9.0], [0.0]])
    first, second = task.predict([("Who ?", ["a b", "c", "d e f"]), ("Who ?", "g")])
    # spans of one or two words: d alone 3, e f 9, f alone 9 (the shorter of equals); "d e f" would have 12
    assert (first.text, first.span) == ("f", AnswerSpan(2, 4, 5))
    starts = math.e + 1 + 1 + math.e**3 + 2
    ends = 2 + math.e**2 + 2 + math.e**9
    assert first.score == pytest.approx(math.e**9 / (starts * ends), rel=1e-5)
    assert (second.text, second.score) == ("g", pytest.approx(1.0))


def test_no_answer() -> None:
    examples = [asked(TEXT, "Ann"), ReadingQuestion("Who ?", ("x",), ())]
    task = built(examples)
    task.network = Fixed([[1.0, 0.0], [0.0], [5.0]], [[1.0, 0.0], [0.0], [0.0]], [0.0, 3.0, 4.0])
    nothing, something = task.predict([("Who ?", ["a b", "c"]), ("Who ?", "d")])
    total = (math.e + 1) ** 2 + 1 + 1 + math.e**3
    assert (nothing.text, nothing.span, nothing.label) == ("", None, "no answer")
    assert nothing.score == pytest.approx((1 + math.e**3) / total, rel=1e-5)
    assert something.text == "d" and something.score == pytest.approx(1 / (1 + math.exp(-1)), rel=1e-5)


def test_paragraphs_without_words() -> None:
    task = built([asked(TEXT, "Ann")])
    for paragraphs in ("", " \n", [""], ["", "  "]):
        assert task.predict([("Who ?", paragraphs)]) == [Answer("", None, 0.0)]
    (answer,) = task.predict([("Who ?", ["", "Ann"])])
    assert answer.text == "Ann" and answer.span == AnswerSpan(1, 0, 3) and answer.score == pytest.approx(1.0)
    task = built([asked(TEXT, "Ann"), ReadingQuestion("Who ?", ("x",), ())])
    assert task.predict([("Who ?", "")]) == [Answer("", None, pytest.approx(1.0))]
    for wrong in ("ab", ("a",), ("a", "b", "c")):
        with pytest.raises(UsageError, match="expected a question and its paragraph"):
            task.predict([wrong])  # type: ignore[list-item]
    for missing in (("a", None), (None, "a"), ("a", ["b", None])):
        with pytest.raises(UsageError, match="a text is a string or a list of words; got None"):
            task.predict([missing])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="has no paragraph"):
        task.predict([("a", [])])


def test_long_paragraphs_are_answered_whole_and_cut_in_training() -> None:
    words = [f"w{number}" for number in range(300)]
    text = " ".join(words)
    examples = [asked(text, f"w{place} w{place + 1}", question=f"q{place} ?") for place in (100, 150, 200, 250, 298)]
    examples.append(asked("w0 w1", "w1"))
    task = built(examples, max_paragraph_length=20)
    batch = task.data(examples).gather(range(6))
    prepared = task.prepare(batch)
    assert prepared.inputs[1].lengths.tolist() == [20] * 5 + [2]
    assert prepared.targets.start.sum(1).tolist() == [1] * 6
    places = prepared.targets.start.int().argmax(1)
    assert (prepared.targets.end.int().argmax(1) - places).tolist() == [1] * 5 + [0] and len(set(places.tolist())) > 2
    # the words that are left are those around the answer
    by_row = task.features.words.prepare(words).rows.tolist()
    for row, (place, start) in enumerate(zip((100, 150, 200, 250, 298), places.tolist()[:5], strict=True)):
        word = prepared.inputs[1].distinct.rows[prepared.inputs[1].index[row, start]]
        assert int(word) == by_row[place]
    task.network = Fixed([[0.0] * 299 + [9.0]], [[0.0] * 299 + [9.0]])
    assert task.predict([("q ?", text)])[0].text == "w299"
    # an answer that is longer than what is left
    long = asked(text, " ".join(words[50:90]))
    targets = task.prepare(task.data([long]).gather([0])).targets
    assert targets.start[0].tolist() == [True] + [False] * 19 and bool(targets.end[0, 19])


def test_cut_layers_are_those_of_the_words_that_are_left(tmp_path: Path) -> None:
    text = " ".join(f"w{number}" for number in range(30))
    examples = [
        asked(text, "w20 w21"),
        ReadingQuestion("who ?", ("w1 w2", text), ("w9",), (AnswerSpan(1, text.index("w9"), 99),)),
    ]
    features = FEATURES.replace(positions=("input", "output"))
    torch.manual_seed(0)
    task = Reading.build(small(max_paragraph_length=7, features=features), examples, [elmo()])
    data = task.data(examples)
    data.cache(task.features, tmp_path, precision="fp32")
    prepared = task.prepare(data.gather([0, 1]))
    whole = task.features.encoders[0].embed([text.split()])[0]
    begin = 20 - int(prepared.targets.start[0].int().argmax())
    found = prepared.inputs[1].frozen[0]
    np.testing.assert_allclose(found[:, 0], whole[:, begin : begin + 7], atol=1e-5)
    assert prepared.inputs[1].lengths.tolist() == [7, 2, 7] and prepared.targets.counts == [1, 2]


def test_one_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any length, and the same answer when attention goes in blocks."""
    task = built([asked(TEXT, "Ann")])
    text = "Ann saw Bob. " * 500
    (answer,) = task.predict([("Who ?", text)])
    monkeypatch.setattr("polyseme.nn.networks.bidaf._CELLS", 1 << 18)
    (again,) = task.predict([("Who ?", text)])
    assert again.span == answer.span and again.score == pytest.approx(answer.score, rel=1e-3)


# ---- the loss


def test_the_loss_by_hand() -> None:
    text = "a b a"
    example = ReadingQuestion(
        "Who ?", (text, "a c"), ("a",), (AnswerSpan(0, 0, 1), AnswerSpan(0, 4, 5), AnswerSpan(1, 0, 1), AnswerSpan(0, 0, 1))
    )
    task = built([example])
    prepared = task.prepare(task.data([example]).gather([0]))
    start, end = [[1.0, 2.0, 3.0], [4.0, 5.0]], [[0.0, 1.0, 0.0], [2.0, 0.0]]
    task.network = Fixed(start, end)
    e = math.exp
    right = (e(1) + e(3) + e(4)) / sum(e(x) for row in start for x in row)
    right *= (e(0) + e(0) + e(2)) / sum(e(x) for row in end for x in row)
    assert float(task.loss(prepared).components["task"]) == pytest.approx(-math.log(right), rel=1e-5)


def test_the_loss_with_no_answer_by_hand() -> None:
    with_answer = ReadingQuestion("Who ?", ("a b", "c"), ("b", "c"), (AnswerSpan(0, 2, 3), AnswerSpan(1, 0, 1)))
    examples = [with_answer, ReadingQuestion("Who ?", ("d",), ())]
    task = built(examples)
    prepared = task.prepare(task.data(examples).gather([0, 1]))
    task.network = Fixed([[1.0, 2.0], [0.5], [3.0]], [[0.0, 1.0], [2.0], [1.0]], [0.0, 1.0, 2.0])
    e = math.exp
    total = (e(1) + e(2)) * (e(0) + e(1)) + e(2.5) + e(0) + e(1)
    first = -math.log((e(3) + e(2.5)) / total)
    second = -math.log(e(2) / (e(2) + e(4)))
    assert float(task.loss(prepared).components["task"]) == pytest.approx((first + second) / 2, rel=1e-5)
    with pytest.raises(UsageError, match=r"the question 'Who \?' has no gold span"):
        task.prepare(task.data([ReadingQuestion("Who ?", ("a",), ("b",))]).gather([0]))


# ---- scores


def test_scores_and_tallies() -> None:
    examples = [asked("the big cat ran", "the big cat", "cat"), asked("Ann ran", "Ann")]
    task = built(examples)
    answers = [Answer("big", AnswerSpan(0, 4, 7), 0.5), Answer("ann", AnswerSpan(0, 0, 3), 0.5)]
    # big against big cat: 1 of 1, 1 of 2
    assert task.score(examples, answers) == pytest.approx({"f1": (2 / 3 + 1) / 2, "exact": 1 / 2})
    np.testing.assert_allclose(task.score_counts(examples, answers), [[2 / 3, 1], [1, 1]])
    with pytest.raises(UsageError, match="1 of 1 questions have no answers"):
        task.score([ReadingQuestion("Who ?", ("a",))], answers[:1])
    with pytest.raises(UsageError, match="no questions to score"):
        task.score([], [])


# ---- learning

PEOPLE, PLACES = ["Ann", "Bob", "Tom Hill"], ["garden", "hall", "attic"]
LEARNING = FitConfig(batch_size=20, epochs=6, patience=6, optim=OptimConfig(learning_rate=0.02, weight_decay=0.0))
LEARNER = small(hidden_size=16, dropout=0.0, features=FeaturesConfig(words=TaskWordConfig(dim=16, characters=None)))


def who_is_where(count: int, seed: int) -> list[ReadingQuestion]:
    """Two people in two places, in one paragraph or two; who is in one of them?"""
    source, found = random.Random(seed), []
    for number in range(count):
        people, places, chosen = source.sample(PEOPLE, 2), source.sample(PLACES, 2), source.randrange(2)
        texts = [f"“{person}”: {place}." for person, place in zip(people, places, strict=True)]
        paragraphs = (" ".join(texts),) if number % 4 else tuple(texts)
        where = min(chosen, len(paragraphs) - 1)
        begin = paragraphs[where].index(people[chosen])
        span = AnswerSpan(where, begin, begin + len(people[chosen]))
        found.append(ReadingQuestion(f"Who: {places[chosen]}?", paragraphs, (people[chosen],), (span,)))
    return found


@pytest.mark.slow
def test_a_toy_set_is_learned(tmp_path: Path) -> None:
    dev = who_is_where(40, 2)
    outcome = fit(
        TaskBuilder(Reading, LEARNER), Splits(who_is_where(200, 1), dev, dev), tmp_path / "out", LEARNING, Run(seed=1)
    )
    assert outcome.scores["test"]["f1"] > 0.9  # by chance 0.5
    assert outcome.task.main_metric == "f1" and np.load(tmp_path / "out" / "test-tallies.npy").shape == (40, 2)
    found = outcome.task.predict([(question.question, question.paragraphs) for question in dev])
    assert outcome.task.score(dev, found) == pytest.approx(outcome.scores["test"])


def test_when_to_be_silent_is_learned(tmp_path: Path) -> None:
    def people(count: int, seed: int) -> list[ReadingQuestion]:
        source, found = random.Random(seed), []
        for number in range(count):
            text = f"{source.choice(PEOPLE)} is in the {source.choice(PLACES)}."
            here = asked(text, text[: text.index(" is")], question="Who is in the house?")
            found.append(here if number % 2 else ReadingQuestion("Who is at sea?", (text,), ()))
        return found

    outcome = fit(
        TaskBuilder(Reading, LEARNER),
        Splits(people(64, 1), people(20, 2)),
        tmp_path / "out",
        LEARNING.replace(epochs=8),
        Run(seed=1),
    )
    assert outcome.scores["dev"]["f1"] > 0.9 and outcome.task.rules == "squad2"


def test_a_report_can_be_made(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", ("It is Ann.", [("Ann", 6)]), ("Nobody.", []))
    task = built(Reading.read(file, small()))
    found = task.error_report(file)
    assert found.examples == 2 and set(found.scores) == {"f1", "exact"} and found.main == "f1"
    assert {wrong.gold for mistake in found.worst for wrong in mistake.errors} <= {"Ann", "no answer"}
