"""How an n-gram model is counted and smoothed: the settings. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.encoders.config import Smoothing
from polyseme.pretraining.method import MIN_VOCABULARY, Method


@dataclass(frozen=True, kw_only=True)
class NgramPretraining(Method):
    """Count the n-grams of a text and smooth them: a language model in seconds.

    >>> NgramPretraining(order=4, cutoffs=(0, 0, 1)).cutoff_per_order
    (0, 0, 1, 1)
    """

    name: ClassVar[str] = "ngram"
    job: ClassVar[str] = "polyseme.pretraining.ngram:NgramJob"
    call_options: ClassVar[tuple[str, ...]] = ()

    order: int = setting(5, "Order of the model: the number of words in the longest n-grams.", min=1, group="Model")
    smoothing: Smoothing = setting(
        "kneser-ney",
        "kneser-ney: modified and interpolated Kneser-Ney. absolute: absolute discounting. none: maximum likelihood.",
        group="Model",
    )
    vocabulary_size: int | None = setting(
        None,
        "Most frequent words, special tokens included. All others are <unk>.",
        min=MIN_VOCABULARY,
        default_text="all words",
        group="Model",
    )
    min_count: int = setting(1, "Rarer words are <unk>.", min=1, group="Model")
    cutoffs: tuple[int, ...] = setting(
        (0,),
        "Drop n-grams that occur at most this often: a number for each order, the last for all higher orders.",
        min=0,
        metavar="0,N,...",
        group="Model",
    )

    max_ngrams: int | None = setting(
        None,
        "Prune the n-grams of two words or more to at most this many, by relative entropy (Stolcke 1998).",
        min=0,
        default_text="all",
        group="Model",
    )

    def problems(self) -> Iterable[str]:
        listed = ",".join(map(str, self.cutoffs))
        if not self.cutoffs or self.cutoffs[0] != 0 or list(self.cutoffs) != sorted(self.cutoffs):
            words = f"the first is 0 ({arg('min_count')} drops single words), and none is below the one before"
            yield f"{arg('cutoffs')} is {listed}; {words}"
        if len(self.cutoffs) > self.order:
            yield f"{arg('cutoffs')} is {listed}; allowed with {arg('order', self.order)}: at most {self.order} numbers"

        if self.max_ngrams is not None and self.smoothing == "none":
            smoothing = f"{arg('smoothing', 'kneser-ney')} or absolute"
            yield f"{arg('max_ngrams')} needs {smoothing}: without smoothing, n-grams that are dropped are impossible"

    @property
    def cutoff_per_order(self) -> tuple[int, ...]:
        """One cutoff for each order."""
        return self.cutoffs + self.cutoffs[-1:] * (self.order - len(self.cutoffs))
