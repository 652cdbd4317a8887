"""Checks of the exercises of chapter 11."""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np


def test_masked_loss(answers: ModuleType) -> None:
    probabilities = np.array([[0.5, 0.5], [0.25, 0.75], [0.9, 0.1]])
    found = answers.masked_loss(np.log(probabilities), np.array([0, -100, 1]))
    assert math.isclose(found, -(math.log(0.5) + math.log(0.1)) / 2), "the mean is over the predicted words only"
    assert math.isclose(answers.masked_loss(np.log(probabilities), np.array([-100, 0, -100])), -math.log(0.25))
    assert answers.masked_loss(np.log(probabilities), np.full(3, -100)) == 0.0


def test_bert_input(answers: ModuleType) -> None:
    tokens, segments = answers.bert_input(["a", "b"], ["c"], 10)
    assert tokens == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"] and segments == [0, 0, 0, 0, 1, 1]
    tokens, segments = answers.bert_input(["a", "b", "c", "d"], ["e", "f"], 7)
    assert tokens == ["[CLS]", "a", "b", "[SEP]", "e", "f", "[SEP]"], "the longer text is cut"
    assert segments == [0, 0, 0, 0, 1, 1, 1]
    tokens, _ = answers.bert_input(["a", "b"], ["c", "d"], 6)
    assert tokens == ["[CLS]", "a", "b", "[SEP]", "c", "[SEP]"], "of equally long ones, the second is cut"
    text = ["a", "b", "c", "d"]
    answers.bert_input(text, ["e"], 5)
    assert text == ["a", "b", "c", "d"], "the texts of the caller stay as they are"


def test_whole_word_mask(answers: ModuleType) -> None:
    subwords = ["the", "em", "##bank", "##ment", "is", "wet"]
    assert answers.whole_word_mask(subwords, {1}) == ["the", "[MASK]", "[MASK]", "[MASK]", "is", "wet"]
    assert answers.whole_word_mask(subwords, {0, 3}) == ["[MASK]", "em", "##bank", "##ment", "is", "[MASK]"]
    assert answers.whole_word_mask(subwords, set()) == subwords
