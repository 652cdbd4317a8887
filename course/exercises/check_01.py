"""Checks of the exercises of chapter 1."""

from __future__ import annotations

import math
from types import ModuleType

BIGRAMS = {("san", "francisco"): 9, ("the", "cat"): 1, ("a", "cat"): 1, ("my", "cat"): 1, ("the", "dog"): 2}
WORDS = ["francisco", "cat", "dog", "the", "a"]


def test_perplexity(answers: ModuleType) -> None:
    assert math.isclose(answers.perplexity([math.log(0.1)] * 7), 10)
    assert math.isclose(answers.perplexity([math.log(0.5), math.log(0.125)]), 4), "the mean is over logarithms"
    assert math.isclose(answers.perplexity([-2.0] * 5000), math.exp(2)), "a product of many probabilities underflows"


def test_add_k(answers: ModuleType) -> None:
    assert math.isclose(answers.add_k(BIGRAMS, "the", "dog", 1, WORDS), 3 / 8)
    assert math.isclose(answers.add_k(BIGRAMS, "the", "francisco", 0.5, WORDS), 0.5 / 5.5)
    assert math.isclose(answers.add_k(BIGRAMS, "never seen", "cat", 1, WORDS), 1 / 5), "an unseen context"
    total = sum(answers.add_k(BIGRAMS, "the", word, 0.3, WORDS) for word in WORDS)
    assert math.isclose(total, 1), "the probabilities after a context sum to one"


def test_continuation_counts(answers: ModuleType) -> None:
    assert answers.continuation_counts(BIGRAMS) == {"francisco": 1, "cat": 3, "dog": 1}
    assert dict(answers.continuation_counts({})) == {}
