"""How `polyseme score --explain` shows the chain rule: a factor for each word, and the product so far.

    P(w1 ... wn) = P(w1 | <s>) P(w2 | <s> w1) ... P(</s> | ...)

For an n-gram model also how each factor came about: which n-gram the table held, and by which weights it backed off.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from polyseme.cli import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from polyseme.cli.options import AnyLanguageModel
    from polyseme.encoders.language_model import WordLogProbs
    from polyseme.encoders.ngram import ChainRuleStep


def as_dicts(model: AnyLanguageModel, found: WordLogProbs) -> list[dict[str, Any]]:
    """The steps as plain values; logs are natural, and `product` is the log of the product so far."""
    from polyseme.encoders.ngram import NgramModel

    if isinstance(model, NgramModel):
        return list(_ngram_dicts(model.steps(found.words)))
    return [
        {"direction": name, "word": word, "log_prob": value, "product": product}
        for name in _sides(found)
        for word, value, product in _side(model, found, name)
    ]


def show_steps(model: AnyLanguageModel, found: WordLogProbs) -> None:
    """The steps of one sentence, for people."""
    from polyseme.encoders.ngram import NgramModel

    if isinstance(model, NgramModel):
        _show_ngrams(model.steps(found.words))
        return
    for name, reading in _sides(found).items():
        show.line(f"{'probability':>16}{'product':>14}  {name}, from {reading}")
        for word, value, product in _side(model, found, name):
            show.line(f"{probability(value):>16}{probability(product):>14}  {show.short(word, 40)}")


def probability(log: float) -> str:
    """A natural log as a probability of four digits; products too small for a float are told too.

    >>> probability(math.log(0.25)), probability(-1000.0)
    ('0.25', '5.076e-435')
    """
    if log > -700:
        return f"{math.exp(log):.4g}"
    whole = math.floor(log / math.log(10))
    return f"{math.exp(log - whole * math.log(10)):.3f}e{whole}"


def _ngram_dicts(steps: list[ChainRuleStep]) -> Iterator[dict[str, Any]]:
    for step, product in zip(steps, _sums(each.log_prob for each in steps), strict=True):
        yield {
            "word": step.word,
            "known": step.known,
            "context": list(step.context),
            "order": step.order,
            "log_prob": step.log_prob,
            "found": step.found,
            "backoffs": [{"context": list(each.context), "weight": each.weight} for each in step.backoffs],
            "product": product,
        }


def _show_ngrams(steps: list[ChainRuleStep]) -> None:
    show.line(f"{'probability':>16}{'product':>14}{'order':>8}  P(word | context)")
    for step, product in zip(steps, _sums(each.log_prob for each in steps), strict=True):
        numbers = f"{probability(step.log_prob):>16}{probability(product):>14}{step.order:>8}"
        show.line(f"{numbers}  {_factors(step)}{'' if step.known else f'  ({step.word} is not in the vocabulary)'}")


def _factors(step: ChainRuleStep) -> str:
    """`P(c | a b) = 0.4 (a b) x 0.25 (b c)`: the back-off weight of each context, then the n-gram that was found.

    A context that is not told has never been seen, and costs nothing.
    """
    asked = f"P({step.word} | {' '.join(step.context)})" if step.context else f"P({step.word})"
    if step.order > len(step.context):
        return asked
    held = " ".join([*step.context[len(step.context) - step.order + 1 :], step.word])
    weights = [f"{probability(each.weight)} ({' '.join(each.context)})" for each in step.backoffs]
    return f"{asked} = {' x '.join([*weights, f'{probability(step.found)} ({held})'])}"


def _sides(found: WordLogProbs) -> dict[str, str]:
    """The directions that there are, and how each reads."""
    return {"forward": "left to right"} | ({} if found.backward is None else {"backward": "right to left"})


def _side(model: AnyLanguageModel, found: WordLogProbs, name: str) -> list[tuple[str, float, float]]:
    """In the order of reading: each word and then the mark, its log-probability, and the sum so far."""
    from polyseme.encoders.gpt import Gpt

    if isinstance(model, Gpt):
        mark = model.subwords.token_text(model.subwords.special_token_id("eos", "bos"))
    else:
        mark = model.config.end if name == "forward" else model.config.begin
    values = found.forward if name == "forward" else found.backward
    assert values is not None
    words = found.words if name == "forward" else found.words[::-1]
    logs = [*(values[:-1] if name == "forward" else values[:-1][::-1]).tolist(), float(values[-1])]
    return list(zip([*words, mark], logs, _sums(logs), strict=True))


def _sums(values: Iterable[float]) -> Iterator[float]:
    total = 0.0
    for value in values:
        total += value
        yield total
