"""The chain rule step by step: P(w1 ... wn) = P(w1 | <s>) P(w2 | <s> w1) ... P(</s> | ...).

A factor for each word and one for the end of the sentence, with the product so far. For n-gram models also how each factor
came about: which n-gram the table has, and by which weights it backed off.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

from polyseme.base.display import columns, html_table, short
from polyseme.encoders.results import ResultTable, WordLogProbs


@dataclass(frozen=True)
class ChainRuleStep:
    """One factor: P(word | context)."""

    word: str
    log_prob: float
    """Natural log of P(word | context)."""
    product: float
    """Natural log of the product up to here."""
    direction: str = "forward"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        """The factor in words."""
        return self.word


@dataclass(frozen=True)
class BackoffWeight:
    """A context whose n-gram the table lacks, and the weight of the lower order."""

    context: tuple[str, ...]
    weight: float
    """A natural log."""


@dataclass(frozen=True, kw_only=True)
class NgramStep(ChainRuleStep):
    """One factor of an n-gram model."""

    known: bool
    """False where the word is outside the vocabulary, and its unknown token was scored."""
    context: tuple[str, ...]
    """The words before it that the model sees."""
    order: int
    """Of the n-gram that the table has."""
    found: float
    """Natural log of that n-gram's probability."""
    backoffs: tuple[BackoffWeight, ...]
    """Longest context first; a context that the table lacks has no weight and costs nothing."""

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "direction"}

    def describe(self) -> str:
        """`P(c | a b) = 0.4 (a b) x 0.25 (b c)`: the back-off weight of each context, then the n-gram that was found."""
        text = f"P({self.word} | {' '.join(self.context)})" if self.context else f"P({self.word})"
        if self.order <= len(self.context):
            ngram = " ".join([*self.context[len(self.context) - self.order + 1 :], self.word])
            weights = [f"{format_probability(each.weight)} ({' '.join(each.context)})" for each in self.backoffs]
            text += f" = {' x '.join([*weights, f'{format_probability(self.found)} ({ngram})'])}"
        return text if self.known else f"{text}  ({self.word} is not in the vocabulary)"


class ChainRule(ResultTable[ChainRuleStep]):
    """All steps of a sentence, those of the backward direction last."""

    header = ("probability", "product", "word")

    def row(self, item: ChainRuleStep) -> tuple[str, ...]:
        return format_probability(item.log_prob), format_probability(item.product), item.describe()

    def directions(self) -> dict[str, ChainRule]:
        """The steps of each direction."""
        return {name: ChainRule(steps) for name, steps in itertools.groupby(self, key=lambda step: step.direction)}

    def to_json(self) -> list[dict[str, Any]]:
        return [step.to_json() for step in self]

    def __str__(self) -> str:
        texts = []
        for name, steps in self.directions().items():
            ngrams = bool(steps) and isinstance(steps[0], NgramStep)
            side = "left to right" if name == "forward" else "right to left"
            last = ("order", "P(word | context)") if ngrams else (f"{name}, from {side}",)
            rows = [("probability", "product", *last)]
            for step in steps:
                *numbers, text = self.row(step)
                rows.append((*numbers, *((str(step.order),) if isinstance(step, NgramStep) else ()), short(text, 120)))
            texts.append(columns(rows, right=range(len(rows[0]) - 1), indent=4))
        return "\n".join(texts)

    def _repr_html_(self) -> str:
        tables = self.directions().items()
        return "".join(html_table(self.header, [self.row(step) for step in steps], caption=name) for name, steps in tables)


def chain_rule(log_probs: WordLogProbs, *, begin: str, end: str) -> ChainRule:
    """Return the steps of both directions, each in its reading order, the boundary token last."""
    steps = _direction("forward", [*log_probs.words, end], log_probs.forward.tolist())
    if log_probs.backward is not None:
        values = [*log_probs.backward[:-1][::-1].tolist(), float(log_probs.backward[-1])]
        steps += _direction("backward", [*log_probs.words[::-1], begin], values)
    return ChainRule(steps)


def _direction(name: str, words: list[str], values: list[float]) -> list[ChainRuleStep]:
    products = itertools.accumulate(values)
    return [ChainRuleStep(word, value, product, name) for word, value, product in zip(words, values, products, strict=True)]


def format_probability(log: float) -> str:
    """A natural log as a probability of four digits, also where it is too small for a float.

    >>> format_probability(math.log(0.25)), format_probability(-1000.0)
    ('0.25', '5.076e-435')
    """
    if log > -700:
        return f"{math.exp(log):.4g}"
    power = math.floor(log / math.log(10))
    return f"{math.exp(log - power * math.log(10)):.3f}e{power}"
