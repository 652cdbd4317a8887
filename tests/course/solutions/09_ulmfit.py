"""Solutions of the exercises of chapter 9."""

from __future__ import annotations

import math


def layer_rates(groups: list[str], rate: float, decay: float = 2.6) -> dict[str, float]:
    return {name: rate / decay**depth for depth, name in enumerate(reversed(groups))}


def trained_groups(groups: list[str], epoch: int) -> list[str]:
    return groups[max(0, len(groups) - 1 - epoch) :]


def ideal_perplexity(things: int, opinions: int, *, agree: bool) -> float:
    sides = 2 * opinions**things if agree else (2 * opinions) ** things
    return math.exp(math.log(math.factorial(things) * sides) / (3 * things))
