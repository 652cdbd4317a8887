"""Checks of the exercises of chapter 8."""

from __future__ import annotations

import math
from types import ModuleType

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "O"], ["B-ORG", "B-ORG", "I-ORG"]]


def test_spans(answers: ModuleType) -> None:
    assert answers.spans(GOLD[0]) == [("PER", 0, 2), ("LOC", 3, 4)]
    assert answers.spans(GOLD[1]) == []
    assert answers.spans(GOLD[2]) == [("ORG", 0, 1), ("ORG", 1, 3)], "two spans of one type can be neighbours"
    assert answers.spans(["O", "B-LOC", "I-LOC"]) == [("LOC", 1, 3)], "a span can end with the sentence"


def test_span_f1(answers: ModuleType) -> None:
    assert answers.span_f1(GOLD, GOLD) == 1.0
    shorter = [["B-PER", "O", "O", "B-LOC"], ["O", "O"], ["B-ORG", "B-ORG", "I-ORG"]]
    assert math.isclose(answers.span_f1(GOLD, shorter), 2 * 3 / 8), "a span that is too short is wrong"
    other = [["B-ORG", "I-ORG", "O", "B-LOC"], ["O", "B-LOC"], ["B-ORG", "B-ORG", "I-ORG"]]
    assert math.isclose(answers.span_f1(GOLD, other), 2 * 3 / 9), "the type counts, and so does a span too many"
    moved = [["O", "O", "O", "B-LOC"], ["B-PER", "I-PER"], ["B-ORG", "B-ORG", "I-ORG"]]
    assert math.isclose(answers.span_f1(GOLD, moved), 2 * 3 / 8), "a span in another sentence is another span"
    assert answers.span_f1([["O"]], [["O"]]) == 0.0


def test_allowed_transitions(answers: ModuleType) -> None:
    labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
    found = answers.allowed_transitions(labels)
    assert [list(map(bool, row)) for row in found] == [
        [True, True, False, True, False],
        [True, True, True, True, False],
        [True, True, True, True, False],
        [True, True, False, True, True],
        [True, True, False, True, True],
    ]
    assert [list(row) for row in answers.allowed_transitions(["I-A", "O"])] == [[True, True], [False, True]]
