"""What the pre-training of encoders cost, read from their model folders."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from polyseme.base.display import format_duration
from polyseme.encoders.shipped import shipped_folder
from polyseme.pretraining.cost import Cost, read_cost
from polyseme.studies.config import NONE
from polyseme.studies.train import encoder_names

FREE = Cost(method=NONE, seconds=0.0, words=0, text_words=0, parameters=0)
"""Cost of no encoder."""
COST_HEADER = ("encoders", "pre-training", "words seen", "words/s", "parameters", "device", "held-out perplexity")
NamedCosts = Sequence[tuple[str, Cost | None]]
"""Rows of encoders and their costs; None: unknown."""


def cost_of(encoders: str) -> Cost | None:
    """Return the cost of all encoders joined by `+`; None if one is unknown."""
    costs = [read_cost(shipped_folder(name) or Path(name).expanduser()) for name in encoder_names(encoders)]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return functools.reduce(Cost.plus, known) if known else FREE


def cost_rows(costs: NamedCosts) -> list[list[str]]:
    """Return the cells of a table of costs, without rows of no encoder."""
    return [[name, *_formatted(cost)] for name, cost in costs if cost is not FREE]


def _formatted(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["unknown", "", "", "", "", ""]
    speed = cost.words_per_second
    perplexity = cost.scores.get("perplexity", cost.scores.get("word_perplexity"))  # per word, if the model has subwords
    return [
        format_duration(cost.seconds),
        f"{cost.words:,}",
        "" if speed is None else f"{speed:,.0f}",
        f"{cost.parameters:,}",
        cost.device,
        "" if perplexity is None else f"{perplexity:,.2f}",
    ]
