"""Confusion tables and the scores read off them; by hand, and against scikit-learn where it is installed."""

import math
import random
import unicodedata

import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.classes import confusion
from polyseme.metrics.spans import PRFScore

GOLD = ["cat", "cat", "cat", "cat", "dog", "dog", "dog", "bird", "bird", "bird"]
ANSWERS = ["cat", "cat", "cat", "dog", "dog", "dog", "bird", "cat", "bird", "bird"]


@pytest.fixture
def table():
    return confusion(GOLD, ANSWERS)


def test_counts(table):
    assert table.labels == ("bird", "cat", "dog")
    assert table.counts.tolist() == [[2, 1, 0], [0, 3, 1], [1, 0, 2]]
    assert confusion(GOLD, ANSWERS, labels=["dog", "cat", "bird"]).counts.tolist() == [[2, 0, 1], [1, 3, 0], [0, 1, 2]]


def test_classes_by_hand(table):
    assert table.classes["cat"] == PRFScore(gold=4, predicted=4, correct=3)
    assert (table.classes["cat"].precision, table.classes["cat"].recall, table.classes["cat"].f1) == (0.75, 0.75, 0.75)
    assert table.classes["dog"] == PRFScore(gold=3, predicted=3, correct=2)
    assert table.accuracy == 0.7
    assert table.macro_f1 == pytest.approx((3 / 4 + 2 / 3 + 2 / 3) / 3)


def test_matthews_by_hand(table):
    # of two classes: (tp tn - fp fn) / sqrt((tp + fp)(tp + fn)(tn + fp)(tn + fn))
    two = confusion(["+"] * 7 + ["-"] * 5, ["+"] * 6 + ["-"] + ["-"] * 3 + ["+"] * 2)
    assert two.matthews == pytest.approx((6 * 3 - 2 * 1) / math.sqrt(8 * 7 * 5 * 4))
    assert table.matthews == pytest.approx((7 * 10 - (4 * 4 + 3 * 3 + 3 * 3)) / (100 - 34))
    assert confusion(["a", "b"], ["b", "a"]).matthews == -1
    assert confusion(["a", "b", "c"], ["a", "b", "c"]).matthews == 1
    assert confusion(["a", "b"], ["a", "a"]).matthews == 0


def test_what_is_never_found_scores_nought():
    table = confusion(["a", "a", "b"], ["a", "a", "c"], labels=["a", "b", "c", "d"])
    assert [scores.f1 for scores in table.classes.values()] == [1, 0, 0, 0]
    assert (table.classes["b"].precision, table.classes["c"].recall) == (0, 0)
    assert table.macro_f1 == pytest.approx(1 / 3)  # nobody speaks of d


def test_against_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    chance = random.Random(0)
    for classes in (2, 3, 7):
        labels = [f"class {number}" for number in range(classes)]
        gold = chance.choices(labels, weights=range(1, classes + 1), k=300)
        answers = [each if chance.random() < 0.6 else chance.choice(labels[1:]) for each in gold]
        table = confusion(gold, answers)
        assert table.counts.tolist() == metrics.confusion_matrix(gold, answers).tolist()
        assert table.macro_f1 == pytest.approx(metrics.f1_score(gold, answers, average="macro", zero_division=0))
        assert table.matthews == pytest.approx(metrics.matthews_corrcoef(gold, answers))
        each = metrics.precision_recall_fscore_support(gold, answers, zero_division=0)
        for place, scores in enumerate(table.classes.values()):
            ours = (scores.precision, scores.recall, scores.f1, scores.gold)
            assert ours == pytest.approx(tuple(column[place] for column in each))


def test_rendering(table):
    assert str(table).splitlines() == [
        "gold \\ predicted   bird    cat    dog  all  recall",
        "bird                  2      1      0    3   0.667",
        "cat                   0      3      1    4   0.750",
        "dog                   1      0      2    3   0.667",
        "all                   3      4      3   10",
        "precision         0.667  0.750  0.667        0.700",
    ]


def test_a_class_without_examples_or_answers_has_a_dash():
    lines = str(confusion(["a", "a"], ["a", "a"], labels=["a", "b"])).splitlines()
    assert lines[2].split() == ["b", "0", "0", "0", "-"] and lines[-1].split() == ["precision", "1.000", "-", "1.000"]


def test_chinese_labels_line_up():
    lines = str(confusion(["积极的", "消极", "neutral"], ["积极的", "积极的", "neutral"])).splitlines()
    widths = [sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in line) for line in lines]
    assert len(set(widths[:4])) == 1
    assert widths[5] == widths[0]


def test_classes_shown_together_keep_their_errors():
    table = confusion(["a"] * 5 + ["b", "c", "d"], ["a"] * 5 + ["c", "b", "d"])
    part = table.largest(1)
    assert part.labels == ("a", "(others)") and part.counts.tolist() == [[5, 0], [0, 3]]
    assert part.accuracy == table.accuracy == 6 / 8
    assert part.classes["(others)"].recall == part.classes["(others)"].precision == 1 / 3
    assert str(part).splitlines()[-1].split() == ["precision", "1.000", "0.333", "0.750"]


def test_wrong_questions():
    with pytest.raises(UsageError, match="1 predictions for 2 gold labels"):
        confusion(["a", "b"], ["a"])
    with pytest.raises(UsageError, match="0 predictions for 0 gold labels; a confusion matrix needs one for each"):
        confusion([], [])
    with pytest.raises(UsageError, match="labels are a; gold labels or predictions also have b, c"):
        confusion(["a", "b"], ["a", "c"], labels=["a"])


def test_a_class_may_be_called_none():
    lines = str(confusion(["none", "for", "none"], ["none", "for", "for"])).splitlines()
    assert lines[2].split() == ["none", "1", "1", "2", "0.500"]
    assert lines[-1].split() == ["precision", "0.500", "1.000", "0.667"]
