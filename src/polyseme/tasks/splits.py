"""Which examples are held out: a random tenth, or folds of a cross-validation.

Parts are drawn by the seed and stratified, so that each has the same share of every label. Examples of one group (equal texts,
the sentences of a document, the questions about a paragraph) stay in one part: a network that has seen one of them would know
the others. A file sorted by label, whose last tenth has one label alone, is thus no problem. What groups and strata are is up
to the task (`Task.split_groups`, `Task.split_strata`).

Groups are dealt one by one, large ones first, to the part that has the fewest examples of their stratum, as in scikit-learn's
StratifiedGroupKFold; with equal sizes this is dealing cards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from polyseme.base.errors import UsageError, arg

PARTS = 10
"""A held-out part is one of so many."""
MAX_SHARE = 0.25
"""Groups with a larger share of the examples are too large to hold out: finer ones are used."""
_BINS = 10


class SplitPlan:
    """Examples that are divided by groups and strata.

    >>> plan = SplitPlan([["a", "b", "c", "c", "d", "e"]], ["x", "x", "x", "x", "y", "y"])
    >>> train, held = plan.hold_out(seed=1)
    >>> sorted(train + held), {"x", "y"} <= {plan.strata[number] for number in held}
    ([0, 1, 2, 3, 4, 5], True)
    """

    def __init__(self, groups: Sequence[Sequence[Hashable]], strata: Sequence[Hashable]) -> None:
        """`groups`: the group of each example, coarse groupings first; `strata`: the stratum of each, such as its label."""
        self.groups, self.strata = groups, list(strata)

    def folds(self, count: int, seed: int) -> list[list[int]]:
        """Return the numbers of the examples in each of `count` parts, in their order."""
        units = self._units(count)
        if len(units) < count:
            raise UsageError(f"{arg('folds', count)} needs as many examples with different texts; the data has {len(units)}")
        parts = _dealt(units, self._strata(units), count, np.random.default_rng([seed, 7]))
        return [sorted(number for unit in part for number in units[unit]) for part in parts]

    def hold_out(self, seed: int, *, fewest: int = 1) -> tuple[list[int], list[int]]:
        """Return the numbers of the examples to train on, and of about a tenth to hold out, each in their order.

        At least `fewest` are held out, and one of each stratum that has two groups or more.
        """
        units = self._units(2)
        if len(units) < 2:
            return list(range(len(self.strata))), []
        strata, random = self._strata(units), np.random.default_rng([seed, 7])
        parts = _dealt(units, strata, min(PARTS, len(units)), random)
        wanted = len(self.strata) / PARTS
        held = set(min(parts, key=lambda part: abs(sum(len(units[unit]) for unit in part) - wanted)))
        held |= _missing(strata, held)
        for unit in random.permutation(len(units)).tolist():
            if sum(len(units[each]) for each in held) >= fewest or len(held) + 1 >= len(units):
                break
            held.add(unit)
        dev = sorted(number for unit in held for number in units[unit])
        inside = set(dev)
        return [number for number in range(len(self.strata)) if number not in inside], dev

    def _units(self, count: int) -> list[list[int]]:
        """Return the examples of each group, by the first grouping with enough groups that are small enough.

        If none is, the examples of the large groups of the finest are divided one by one.
        """
        units, largest = [[number] for number in range(len(self.strata))], max(MAX_SHARE * len(self.strata), 1)
        for grouping in self.groups:
            found: dict[Hashable, list[int]] = {}
            for number, group in enumerate(grouping):
                found.setdefault(group, []).append(number)
            units = list(found.values())
            if len(units) >= count and max(map(len, units)) <= largest:
                return units
        return [part for unit in units for part in ([unit] if len(unit) <= largest else [[number] for number in unit])]

    def _strata(self, units: Sequence[Sequence[int]]) -> list[Hashable]:
        """Return the most frequent stratum of each group."""
        return [Counter(self.strata[number] for number in unit).most_common(1)[0][0] for unit in units]


def _dealt(
    units: Sequence[Sequence[int]], strata: Sequence[Hashable], count: int, random: np.random.Generator
) -> list[list[int]]:
    """Return the numbers of the groups in each of `count` parts."""
    order = random.permutation(len(units)).tolist()
    first = {stratum: number for number, stratum in enumerate(dict.fromkeys(strata[unit] for unit in order))}
    order.sort(key=lambda unit: (first[strata[unit]], -len(units[unit])))  # stable: otherwise at random
    parts: list[list[int]] = [[] for _ in range(count)]
    totals = [0] * count
    sizes: dict[Hashable, list[int]] = {}
    for unit in order:
        own = sizes.setdefault(strata[unit], [0] * count)
        part = min(range(count), key=lambda each: (own[each], totals[each]))
        parts[part].append(unit)
        own[part] += len(units[unit])
        totals[part] += len(units[unit])
    return [parts[number] for number in random.permutation(count).tolist()]


def _missing(strata: Sequence[Hashable], held: set[int]) -> set[int]:
    """Return a group of each stratum that is not held out and has two groups or more."""
    counts, present = Counter(strata), {strata[unit] for unit in held}
    first = {strata[unit]: unit for unit in reversed(range(len(strata)))}
    return {unit for stratum, unit in first.items() if stratum not in present and counts[stratum] > 1}


def same_text(*texts: str | Sequence[str] | None) -> Hashable:
    """Return what texts have in common that differ only in case and blanks.

    >>> same_text("A  Film") == same_text(["a", "film"])
    True
    """
    return tuple("" if text is None else " ".join(_words(text)).casefold() for text in texts)


def _words(text: str | Sequence[str]) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def quantiles(numbers: Sequence[float]) -> list[Hashable]:
    """Return for each number which tenth of the sorted numbers it is in; fewer parts for few numbers.

    >>> quantiles([0.1, 5.0, 0.2] * 10)[:3]
    [0, 2, 1]
    """
    values = np.asarray(numbers, dtype=np.float64)
    bins = max(min(_BINS, len(values) // _BINS), 1)
    ranks = np.searchsorted(np.sort(values), values, side="left")
    return (ranks * bins // max(len(values), 1)).tolist()


def split_plan(task: Any, examples: Sequence[Any], config: Any) -> SplitPlan:
    """Return how the examples of a task are divided."""
    return SplitPlan(task.split_groups(examples, config), task.split_strata(examples, config))
