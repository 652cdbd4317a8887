"""What a report says of known answers."""

from types import SimpleNamespace

import pytest

from polyseme.base.errors import FormatError
from polyseme.tasks.classification import ClassificationConfig, LabelledText
from polyseme.tasks.errors import Strange, report, strange_labels
from polyseme.tasks.pairs import LabelledPair, PairsConfig, Score
from polyseme.tasks.tagging import TaggingConfig
from polyseme.text.conll import Tagged


def asked(config, examples, answers, labels=()):
    """A task that gives these answers."""
    return SimpleNamespace(
        config=config,
        labels=list(labels),
        main="it",
        read=lambda path, config: examples,
        data=lambda examples: examples,
        answer=lambda data: answers,
        score=lambda examples, answers: {"it": 1.0},
    )


def tagged(tags: str, begin: int = 1) -> Tagged:
    found = tags.split()
    return Tagged([f"w{place}" for place in range(len(found))], found, list(range(begin, begin + len(found))))


def test_spans():
    examples = [tagged("B-X I-X O B-Y"), tagged("O O", 6), tagged("B-X B-X", 9)]
    answers = [["B-X", "O", "O", "B-Y"], ["O", "O"], ["B-X", "B-Y"]]
    found = report(asked(TaggingConfig(scheme="BIO"), examples, answers, ["O", "B-X", "B-Y"]), "f", errors=9)
    assert found.confusion.labels == ("X", "Y", "none")
    assert found.confusion.counts.tolist() == [[1, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert [(mistake.where, mistake.weight) for mistake in found.worst] == [("f:1", 2), ("f:9", 1)]
    first = [(wrong.text, wrong.truth, wrong.answer) for wrong in found.worst[0].wrong]
    assert first == [("w0", "none", "X"), ("w0 w1", "X", "none")]
    assert found.confused(2) == [("X", "Y", 1), ("X", "none", 1)]


def test_spans_without_types_and_none_at_all():
    config = TaggingConfig(scheme="BMES")
    found = report(asked(config, [tagged("B E S")], [["S", "S", "S"]], ["O", "B", "E", "S"]), "f")
    assert found.confusion.labels == ("span", "none") and found.confusion.counts.tolist() == [[1, 1], [2, 0]]
    nothing = report(asked(config, [tagged("O O")], [["O", "O"]], ["O"]), "f")
    assert nothing.confusion is None and nothing.worst == [] and nothing.confused(3) == []


def test_plain_tags():
    config = TaggingConfig(scheme="plain")
    found = report(asked(config, [tagged("N V N"), tagged("V V", 5)], [["N", "N", "N"], ["V", "V"]], "NV"), "f", errors=1)
    assert found.confusion.counts.tolist() == [[2, 0], [1, 2]]
    assert [(wrong.text, wrong.truth, wrong.answer) for wrong in found.worst[0].wrong] == [("w1", "V", "N")]


def test_scores_are_told_by_how_far_they_are_off():
    pairs = [LabelledPair("a", ["b", "c"], label, line) for line, label in enumerate(("1", "2.5", "4"), 2)]
    found = report(asked(PairsConfig(goal="score"), pairs, [Score(1.5), Score(0.5), Score(4.25)], ["score"]), "f", errors=2)
    assert found.confusion is None and found.strange == []
    assert [(mistake.where, mistake.weight) for mistake in found.worst] == [("f:3", 2.0), ("f:2", 0.5)]
    assert found.worst[0].text == "a | b c" and found.worst[0].wrong[0].answer == "0.500"


def test_strange_labels():
    config = TaggingConfig(scheme="BIO")
    examples = [tagged("B-X O B-Z"), tagged("B-Z I-Z", 7)]
    assert strange_labels(config, ["O", "B-X", "E-X"], examples, "f") == [Strange("f:3", "Z", 3)]
    assert str(Strange("f:3", "Z", 3)) == "f:3: has the label 'Z' (3 times)"
    with pytest.raises(FormatError, match="f:1: has the tag 'NOUN'"):
        strange_labels(config, ["O", "B-X"], [tagged("NOUN")], "f")
    assert strange_labels(TaggingConfig(scheme="plain"), ["N"], [tagged("N V")], "f") == [Strange("f:2", "V", 1)]
    texts = [LabelledText("a", "x"), LabelledText("b", "y")]
    assert strange_labels(ClassificationConfig(), ["x"], texts, "f") == [Strange("f", "y", 1)]
