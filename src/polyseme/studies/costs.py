"""What the encoders of a row cost to train, read from their model folders."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from polyseme.base.formatting import format_duration
from polyseme.encoders.shipped import shipped_folder
from polyseme.pretraining.cost import Cost, read_cost
from polyseme.studies.train import NONE, named_in

FREE = Cost(method=NONE, seconds=0.0, words=0, text_words=0, parameters=0)
"""Of no encoder."""
HEAD = ("encoders", "pre-training", "words seen", "words/s", "parameters", "device", "held-out perplexity")


def cost_of(encoders: str) -> Cost | None:
    """Of all encoders that are joined by `+`; None where one of them does not tell."""
    found = [read_cost(shipped_folder(name) or Path(name).expanduser()) for name in named_in(encoders)]
    told = [cost for cost in found if cost is not None]
    if len(told) < len(found):
        return None
    return functools.reduce(Cost.plus, told) if told else FREE


def as_markdown(costs: Sequence[tuple[str, Cost | None]]) -> str:
    """A table for documents: rows of encoders by their names, and what each cost."""
    lines = [list(HEAD), ["---"] + ["---:"] * (len(HEAD) - 1)]
    lines += [[name, *_formatted(cost)] for name, cost in costs if cost is not FREE]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines) if len(lines) > 2 else ""


def _formatted(cost: Cost | None) -> list[str]:
    if cost is None:
        return ["not told", "", "", "", "", ""]
    speed = cost.words_per_second
    perplexity = cost.scores.get("perplexity", cost.scores.get("word_perplexity"))  # of pieces, but for each word
    return [
        format_duration(cost.seconds),
        f"{cost.words:,}",
        "" if speed is None else f"{speed:,.0f}",
        f"{cost.parameters:,}",
        cost.device,
        "" if perplexity is None else f"{perplexity:,.2f}",
    ]
