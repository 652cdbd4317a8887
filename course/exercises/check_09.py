"""Checks of the exercises of chapter 9."""

from __future__ import annotations

import math
from types import ModuleType

GROUPS = ["table", "layer1", "layer2", "classifier"]


def test_layer_rates(answers: ModuleType) -> None:
    found = answers.layer_rates(GROUPS, 0.01)
    assert set(found) == set(GROUPS)
    assert math.isclose(found["classifier"], 0.01), "the top group has the full rate"
    assert math.isclose(found["layer1"], 0.01 / 2.6**2) and math.isclose(found["table"], 0.01 / 2.6**3)
    assert answers.layer_rates(GROUPS, 0.5, decay=1.0) == dict.fromkeys(GROUPS, 0.5)


def test_trained_groups(answers: ModuleType) -> None:
    assert answers.trained_groups(GROUPS, 0) == ["classifier"]
    assert answers.trained_groups(GROUPS, 1) == ["layer2", "classifier"]
    assert answers.trained_groups(GROUPS, 3) == GROUPS
    assert answers.trained_groups(GROUPS, 10) == GROUPS, "later epochs train all groups"


def test_ideal_perplexity(answers: ModuleType) -> None:
    assert math.isclose(answers.ideal_perplexity(1, 1, agree=True), 2 ** (1 / 3)), "there are two reviews"
    assert math.isclose(answers.ideal_perplexity(1, 4, agree=False), 8 ** (1 / 3))
    both = [answers.ideal_perplexity(5, 8, agree=agree) for agree in (True, False)]
    assert math.isclose(both[0], (math.factorial(5) * 2 * 8**5) ** (1 / 15))
    assert math.isclose(both[1], (math.factorial(5) * 16**5) ** (1 / 15))
    assert both[0] < both[1], "who knows more is surprised less"
