"""Spans of all schemes, legal or not."""

import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.spans import are_span_tags, span_scores, spans


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-P I-P O B-L", [(0, 2, "P"), (3, 4, "L")]),
        ("B-P B-P I-P", [(0, 1, "P"), (1, 3, "P")]),
        ("I-P I-P B-P O I-L I-P", [(0, 2, "P"), (2, 3, "P"), (4, 5, "L"), (5, 6, "P")]),  # IOB1
        ("B-P I-P E-P S-L S-L B-P E-P", [(0, 3, "P"), (3, 4, "L"), (4, 5, "L"), (5, 7, "P")]),  # BIOES
        ("B-P M-P E-P S-L O B-P E-P", [(0, 3, "P"), (3, 4, "L"), (5, 7, "P")]),  # BMES
        ("B-P M-P E-P W-L O", [(0, 3, "P"), (3, 4, "L")]),  # BMEWO
        ("B-P I-P L-P U-L U-L", [(0, 3, "P"), (3, 4, "L"), (4, 5, "L")]),  # BILOU
        ("B M E S B E", [(0, 3, ""), (3, 4, ""), (4, 6, "")]),  # words
        ("B-P I-L I-L", [(0, 1, "P"), (1, 3, "L")]),  # illegal from here on: the type changes inside
        ("O E-P E-P", [(1, 2, "P"), (2, 3, "P")]),
        ("E-P I-P O M-P", [(0, 1, "P"), (1, 2, "P"), (3, 4, "P")]),
        ("S-P I-P", [(0, 1, "P"), (1, 2, "P")]),
        ("B-P S-P", [(0, 1, "P"), (1, 2, "P")]),
        ("B-P O", [(0, 1, "P")]),
        ("B-a-b I-a-b", [(0, 2, "a-b")]),
        ("O O", []),
        ("", []),
    ],
)
def test_spans(tags, expected):
    assert spans(tags.split()) == expected


def test_scores():
    gold = [["B-P", "I-P", "O", "B-L"], ["B-P"], []]
    predicted = [["B-P", "I-P", "B-L", "I-L"], ["B-L"], []]
    scores = span_scores(gold, predicted)
    assert (scores.gold, scores.predicted, scores.correct) == (3, 3, 1)
    assert scores.precision == scores.recall == scores.f1 == pytest.approx(1 / 3)
    more = span_scores([["B-P", "O", "O"]], [["B-P", "B-P", "B-P"]])
    assert (more.precision, more.recall, more.f1) == (pytest.approx(1 / 3), 1, pytest.approx(0.5))
    nothing = span_scores([["O"]], [["O"]])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


def test_which_tags_are_spans():
    assert are_span_tags(["O", "B-X"]) and are_span_tags(["B", "M", "E", "S"])
    assert not are_span_tags(["O"]) and not are_span_tags([]) and not are_span_tags(["B-X", "NOUN"])


def test_called_wrongly():
    with pytest.raises(UsageError, match="'NOUN' is not a span tag"):
        spans(["NOUN"])
    with pytest.raises(UsageError, match="differ in the number"):
        span_scores([["O"]], [["O", "O"]])
