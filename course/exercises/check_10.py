"""Checks of the exercises of chapter 10."""

from __future__ import annotations

from types import ModuleType

import numpy as np


def test_causal_weights(answers: ModuleType) -> None:
    scores = np.random.default_rng(0).normal(size=(4, 4))
    found = answers.causal_weights(scores)
    assert np.allclose(found.sum(axis=1), 1), "each row sums to one"
    assert np.all(np.triu(found, 1) == 0), "no word looks at later words"
    assert np.allclose(found[0], [1, 0, 0, 0]), "the first word sees only itself"
    assert np.allclose(found[1, 0] / found[1, 1], np.exp(scores[1, 0] - scores[1, 1]))
    assert np.all(np.isfinite(answers.causal_weights(1000 * scores))), "large scores do not overflow"


def test_gpt_inputs(answers: ModuleType) -> None:
    a, b, c = ["it", "rains"], ["wet"], ["dry", "air"]
    assert answers.gpt_inputs("classification", a) == [["<s>", "it", "rains", "<e>"]]
    assert answers.gpt_inputs("entailment", a, b) == [["<s>", "it", "rains", "$", "wet", "<e>"]]
    both = [["<s>", "it", "rains", "$", "wet", "<e>"], ["<s>", "wet", "$", "it", "rains", "<e>"]]
    assert answers.gpt_inputs("similarity", a, b) == both
    choices = [["<s>", "it", "rains", "$", "wet", "<e>"], ["<s>", "it", "rains", "$", "dry", "air", "<e>"]]
    assert answers.gpt_inputs("choice", a, b, c) == choices
    assert a == ["it", "rains"], "the texts of the caller stay as they are"


def test_num_parameters(answers: ModuleType) -> None:
    assert answers.num_parameters(10, 4, 2, 0) == 10 * 2 + 4 * 2 + 2 * 2, "no blocks: two tables and a layer norm"
    assert answers.num_parameters(50_257, 1_024, 768, 12) == 124_439_808
    assert answers.num_parameters(50_257, 1_024, 1_600, 48) == 1_557_611_200
