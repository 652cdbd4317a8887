"""What a report says of known answers."""

import pytest

from polyseme.base.errors import FormatError
from polyseme.tasks.base import Task
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import FeaturesConfig, TaskConfig, TaskWordConfig
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel
from polyseme.tasks.pairs import LabelledPair, Pairs
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import Answer, LabelPrediction, ScorePrediction
from polyseme.tasks.reading import Reading
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.tasks.roles import RoleExample, Roles
from polyseme.tasks.roles_config import RolesConfig
from polyseme.tasks.tag_scheme import from_bioes
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from polyseme.text.labelled.squad import AnswerSpan, ReadingQuestion

SMALL = {"hidden_size": 2, "features": FeaturesConfig(words=TaskWordConfig(dim=2, characters=None))}


def asked(kind, config, examples, answers):
    """A task that has learned these examples, and gives these answers."""
    task = kind.build(config, examples)
    task.read_scored = lambda path, config, known: kind.merge_labels(examples, config, known)
    task.predict_data = lambda data: answers
    return task


def told(mistake):
    return [(wrong.text, wrong.gold, wrong.predicted) for wrong in mistake.errors]


def tagged(tags: str, begin: int = 1) -> TaggedSentence:
    found = tags.split()
    return TaggedSentence([f"w{place}" for place in range(len(found))], found, list(range(begin, begin + len(found))))


def test_spans():
    examples = [tagged("B-X I-X O B-Y"), tagged("O O", 6), tagged("B-X B-X", 9)]
    answers = [["B-X", "O", "O", "B-Y"], ["O", "O"], ["B-X", "B-Y"]]
    found = asked(Tagging, TaggingConfig(scheme="BIO", **SMALL), examples, answers).error_report("f", errors=9)
    assert found.confusion.labels == ("X", "Y", "none")
    assert found.confusion.counts.tolist() == [[1, 1, 1], [0, 1, 0], [1, 0, 0]]
    assert [(mistake.where, mistake.weight) for mistake in found.worst] == [("f:1", 2), ("f:9", 1)]
    assert told(found.worst[0]) == [("w0", "none", "X"), ("w0 w1", "X", "none")]
    assert found.confused(2) == [("X", "Y", 1), ("X", "none", 1)]


def test_scores_of_each_class():
    examples = [tagged("B-X I-X O B-Y"), tagged("O O", 6), tagged("B-X B-X", 9)]
    answers = [["B-X", "O", "O", "B-Y"], ["O", "O"], ["B-X", "B-Y"]]
    found = asked(Tagging, TaggingConfig(scheme="BIO", **SMALL), examples, answers).error_report("f")
    # X: 1 of 3 is found, 1 of 2 answers is right; Y: 1 of 1, and 1 of 2
    assert "   precision  recall     f1  gold\nX      0.500   0.333  0.400     3\nY      0.500   1.000  0.667     1\n" in str(
        found
    )
    assert found.to_json()["classes"]["Y"] == {"precision": 0.5, "recall": 1.0, "f1": 2 / 3, "gold": 1}
    assert list(found.to_json()["classes"]) == ["X", "Y"]


def test_an_error_is_shown_once():
    config = TaggingConfig(scheme="plain", **SMALL)
    same, other = [tagged("N V", place) for place in (1, 4)], tagged("V V", 7)
    found = asked(Tagging, config, [*same, other], [["N", "N"], ["N", "N"], ["N", "V"]]).error_report("f", errors=3)
    assert [each.where for each in found.worst] == ["f:1", "f:7"]


def test_chinese_is_shown_without_blanks():
    examples = [TaggedSentence(list("他在北京"), ["O", "O", "B-LOC", "I-LOC"], [1, 2, 3, 4])]
    found = asked(Tagging, TaggingConfig(scheme="BIO", **SMALL), examples, [["O"] * 4]).error_report("f")
    assert found.worst[0].text == "他在北京" and told(found.worst[0]) == [("北京", "LOC", "none")]


def test_spans_without_types_and_none_at_all():
    config = TaggingConfig(scheme="BMES", **SMALL)
    found = asked(Tagging, config, [tagged("B E S")], [["S", "S", "S"]]).error_report("f")
    assert found.confusion.labels == ("span", "none") and found.confusion.counts.tolist() == [[1, 1], [2, 0]]
    task = asked(Tagging, config, [tagged("B E S")], [["O", "O"]])
    task.read_scored = lambda path, config, known: ([tagged("O O")], {})
    nothing = task.error_report("f")
    assert nothing.confusion is None and nothing.worst == [] and nothing.confused(3) == []


def test_plain_tags():
    config = TaggingConfig(scheme="plain", **SMALL)
    found = asked(Tagging, config, [tagged("N V N"), tagged("V V", 5)], [["N", "N", "N"], ["V", "V"]]).error_report(
        "f", errors=1
    )
    assert found.confusion.counts.tolist() == [[2, 0], [1, 2]]
    assert told(found.worst[0]) == [("w1", "V", "N")]


def test_scores_are_told_by_how_far_they_are_off():
    pairs = [LabelledPair("a", ["b", "c"], label, line) for line, label in enumerate(("1", "2.5", "4"), 2)]
    answers = [ScorePrediction(1.5), ScorePrediction(0.5), ScorePrediction(4.25)]
    found = asked(Pairs, PairsConfig(goal="score", **SMALL), pairs, answers).error_report("f", errors=2)
    assert found.confusion is None and found.unknown_labels == []
    assert [(mistake.where, mistake.weight) for mistake in found.worst] == [("f:3", 2.0), ("f:2", 0.5)]
    assert found.worst[0].text == "a | b c" and found.worst[0].errors[0].predicted == "0.500"


def test_roles_are_told_by_arguments():
    """Neither the predicate nor what continues it counts, and an argument in pieces is one."""
    examples = [
        RoleExample([*"abcdef"], 2, ["B-A1", "I-A1", "B-V", "B-C-A1", "O", "B-AM"], [4, 5, 6, 7, 8, 9]),
        RoleExample([*"abc"], 1, ["B-A0", "B-V", "O"], [11, 11, 11]),
        RoleExample([*"ab"], 1, ["B-A0", "B-V"]),
    ]
    answers = [["B-A1", "I-A1", "B-V", "O", "O", "B-A0"], ["B-A0", "O", "O"], ["O", "B-V"]]
    found = asked(Roles, RolesConfig(layers=1, **SMALL), examples, answers).error_report("f")
    assert found.confusion.labels == ("A0", "A1", "AM", "none")
    assert found.confusion.counts.tolist() == [[1, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert [(each.where, each.text, each.weight) for each in found.worst] == [("f:6", "a b [c] d e f", 3), ("f", "a [b]", 1)]
    assert told(found.worst[0]) == [("a b", "none", "A1"), ("a b ... d", "A1", "none"), ("f", "AM", "A0")]


def test_answers_are_told_by_what_they_lack():
    span = AnswerSpan(0, 0, 3)
    questions = [
        ReadingQuestion("Who\nis it?", ("Ann Lee\nis it",), ("Ann Lee", "Ann\nLee", "Lee"), (span,), "q1"),
        ReadingQuestion(["Who", "?"], ("Ann",), ("Ann",), (span,)),
        ReadingQuestion("Who left?", ("Ann",), ("Ann",), (span,), where=7),
        ReadingQuestion("Who came?", ("Ann",), ("Ann",), (span,)),
    ]
    answers = [Answer("Ann", span, 0.9), Answer("is", span, 0.2), Answer("", None, 0.5), Answer("the Ann", span, 0.8)]
    found = asked(Reading, ReadingConfig(**SMALL), questions, answers).error_report("f")
    assert found.confusion is None and found.unknown_labels == []
    assert [(each.where, each.text, each.probability) for each in found.worst] == [
        ("f:7", "Who left?", 0.5), ("f", "Who ?", 0.2), ("f (q1)", "Who is it?", 0.9)
    ]  # fmt: skip
    assert [each.weight for each in found.worst] == pytest.approx([1, 1, 1 / 3])
    assert told(found.worst[0]) == [("Who left?", "Ann", "no answer")]
    assert told(found.worst[2]) == [("Who is it?", "Ann Lee / Lee", "Ann")]


def test_whether_there_is_an_answer_is_told_where_there_may_be_none():
    questions = [ReadingQuestion("Who?", ("Ann",), ("Ann",), (AnswerSpan(0, 0, 3),)), ReadingQuestion("Why?", ("Ann",), ())]
    answers = [Answer("", None, 0.4), Answer("", None, 0.6)]
    found = asked(Reading, ReadingConfig(**SMALL), questions, answers).error_report("f")
    assert found.confused(2) == [("answer", "no answer", 1)] and len(found.worst) == 1


def test_a_task_need_not_know_its_errors():
    task = asked(Tagging, TaggingConfig(scheme="BIO", **SMALL), [tagged("B-X O")], [["O", "O"]])
    assert Task.confusion_matrix(task, [], []) is None and list(Task.example_errors(task, [], [], "f")) == []
    assert Task.unknown_labels([tagged("B-X")], [], TaskConfig(), "f") == []


def test_strange_labels():
    config = TaggingConfig(scheme="BIO")
    examples = [tagged("B-X O B-Z"), tagged("B-Z I-Z", 7)]
    assert Tagging.unknown_labels(examples, ["O", "B-X", "E-X"], config, "f") == [UnknownLabel("f:3", "Z", 3)]
    assert str(UnknownLabel("f:3", "Z", 3)) == "f:3: has the label 'Z' (3 times)"
    with pytest.raises(FormatError, match="f:1: has the tag 'NOUN'"):
        Tagging.unknown_labels([tagged("NOUN")], ["O", "B-X"], config, "f")
    assert Tagging.unknown_labels([tagged("N V")], ["N"], TaggingConfig(scheme="plain"), "f") == [UnknownLabel("f:2", "V", 1)]
    texts = [LabelledText("a", "x"), LabelledText("b", "y")]
    assert Classification.unknown_labels(texts, ["x"], ClassificationConfig(), "f") == [UnknownLabel("f", "y", 1)]


def test_rows_of_wrong_predictions():
    examples = [tagged("B-X I-X O B-Y"), tagged("O O", 6)]
    answers = [["B-X", "O", "O", "B-Y"], ["O", "O"]]
    found = asked(Tagging, TaggingConfig(scheme="BIO", **SMALL), examples, answers).error_report("f")
    both = {"where": "f:1", "probability": None, "example": "w0 w1 w2 w3"}
    assert found.rows() == [
        {"text": "w0", "gold": "none", "predicted": "X", **both},
        {"text": "w0 w1", "gold": "X", "predicted": "none", **both},
    ]


def test_repeated_texts_are_counted_and_shown_once():
    labels = ["x", "y", "x", "y", "y", "y", "x", "y", "y", "y", "y"]
    examples = [LabelledText("b" if line == 5 else "a", label, where=line) for line, label in enumerate(labels, 1)]
    answers = [LabelPrediction("x", 0.9, {"x": 0.9, "y": 0.1})] * len(examples)
    task = asked(Classification, ClassificationConfig(**SMALL), examples, answers)
    found = task.error_report("f", errors=9)
    wrong = [line for line, label in enumerate(labels, 1) if label == "y"]
    assert found.wrong == found.confusion.counts[1, 0] == len(found.rows()) == len(found.to_json()["errors"]) == len(wrong)
    assert sorted(int(row["where"].removeprefix("f:")) for row in found.rows()) == wrong
    shown = str(found)
    assert shown.endswith("worst errors\n\n" + "\n\n".join(map(str, found.worst))) and len(found.worst) == 2
    assert "  and 6 equal ones: lines 4, 6, 8, 9, 10 and 1 more" in shown
    one = task.error_report("f", errors=1)
    assert "worst errors (7 of 8)" in str(one) and [row["where"] for row in one.rows()][:3] == ["f:2", "f:4", "f:6"]
    assert str(ExampleError("f", "a", [], 1, equal=("f",))) == "f\n  a\n  and 1 equal one"


@pytest.mark.parametrize("learned", ["BIO", "IOB1", "BIOES", "BMES", "BMEWO", "BILOU"])
@pytest.mark.parametrize("scheme", ["BIO", "IOB1", "BIOES", "BMES", "BMEWO", "BILOU"])
def test_files_of_different_schemes_are_compared_by_spans(learned, scheme, tmp_path):
    tags = ["B-X", "I-X", "E-X", "O", "S-Y", "B-Y", "E-Y"]
    path = tmp_path / "dev.conll"
    path.write_text("".join(f"w{number} {tag}\n" for number, tag in enumerate(from_bioes(tags, scheme))))
    config = TaggingConfig(scheme=learned, **SMALL)
    answers = [from_bioes(tags, learned)]
    task = asked(Tagging, config, Tagging.read(path, config), answers)
    found = task.error_report(path)
    assert set(found.scores.values()) == {1.0} and not found.wrong and not found.unknown_labels
    (example,) = task.read(path, config)
    assert task.example_json(example, answers[0], path)["gold"] == answers[0]
