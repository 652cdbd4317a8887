"""Coreference scores: MUC, B-cubed, CEAF and LEA, and the mean F1 of the first three, by which systems are ranked.

Each score is a precision and a recall, and each of these a quotient of sums over documents. So documents can be resampled for a
bootstrap, and the score of a set is that of the reference scorer (Pradhan et al. 2014), not a mean over documents.

    MUC     links that must be removed or added (Vilain et al. 1995)
    B3      for each mention, how much of its cluster is correct (Bagga and Baldwin 1998)
    CEAF    the best one-to-one alignment of clusters, by their overlap phi 4 (Luo 2005)
    LEA     for each cluster, the fraction of its links that were found, weighted by its size (Moosavi and Strube 2016)

Gold and predicted mentions need not be the same. Without `singletons`, clusters of one mention are dropped on both sides, as in
OntoNotes, which has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError

Floats = NDArray[np.float64]
Clusters = Sequence[Sequence[Hashable]]
"""A cluster holds the mentions of one entity; a mention is any hashable value."""
MEASURES = ("muc", "b3", "ceaf", "lea")
CONLL = 3
"""The number of measures whose mean ranks systems."""


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision and recall of one measure."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def coreference_statistics(gold: Sequence[Clusters], predicted: Sequence[Clusters], *, singletons: bool = False) -> Floats:
    """Return numerators and denominators of precision and recall of each measure, (documents, 16), for `conll_score`."""
    if len(gold) != len(predicted):
        raise UsageError(f"{len(predicted)} predictions for {len(gold)} documents; expected one for each")
    pairs = [(_sets(a, singletons), _sets(b, singletons)) for a, b in zip(gold, predicted, strict=True)]
    return np.array([_statistics(a, b) for a, b in pairs], dtype=np.float64).reshape(-1, 4 * len(MEASURES))


def coreference_scores_from_sums(sums: Floats) -> dict[str, PrecisionRecall]:
    """Return each of `MEASURES` from sums (16,) over documents."""
    ratios = _ratios(sums.reshape(len(MEASURES), 4))
    return {name: PrecisionRecall(*map(float, each)) for name, each in zip(MEASURES, ratios, strict=True)}


def conll_score(sums: Floats) -> Floats:
    """Return the mean F1 of MUC, B3 and CEAF, (...), from sums over documents, (..., 16).

    >>> sums = coreference_statistics([["abc", "defg"]], [["ab", "cd", "fghi"]]).sum(0)
    >>> round(float(conll_score(sums)), 4)  # 0.4, 5 / 11 and 0.52
    0.4582
    """
    measures = sums.reshape(*sums.shape[:-1], len(MEASURES), 4)[..., :CONLL, :]
    ratios = _ratios(measures)
    both = ratios.sum(-1)
    f1: Floats = np.where(both > 0, 2 * ratios.prod(-1) / np.where(both > 0, both, 1), 0.0)
    mean: Floats = f1.mean(-1)
    return mean


def _ratios(sums: Floats) -> Floats:
    """Return precision and recall, (..., 2), from numerators and denominators, (..., 4); 0 / 0 is 0."""
    ratios: Floats = sums[..., 0::2] / np.where(sums[..., 1::2] > 0, sums[..., 1::2], 1)
    return ratios


def _sets(clusters: Clusters, singletons: bool) -> list[frozenset[Hashable]]:
    found = [frozenset(cluster) for cluster in clusters]
    if len(frozenset().union(*found)) != sum(map(len, found)):
        raise UsageError("a mention is in two clusters; it must be in one")
    return [cluster for cluster in found if len(cluster) > (0 if singletons else 1)]


# ---- one document

Sizes = Sequence[int]
Shared = dict[tuple[int, int], int]
"""Common mentions of a gold and a predicted cluster, by their numbers."""


def _statistics(gold: Sequence[frozenset[Hashable]], predicted: Sequence[frozenset[Hashable]]) -> list[float]:
    wanted, given = list(map(len, gold)), list(map(len, predicted))
    owner = {mention: number for number, cluster in enumerate(predicted) for mention in cluster}
    shared: Shared = {}
    for number, cluster in enumerate(gold):
        for mention in cluster & owner.keys():
            pair = number, owner[mention]
            shared[pair] = shared.get(pair, 0) + 1
    turned = {(b, a): count for (a, b), count in shared.items()}
    return [
        *(*_muc(given, turned), *_muc(wanted, shared)),
        *(*_b3(given, turned), *_b3(wanted, shared)),
        *_ceaf(wanted, given, shared),
        *(*_lea(given, wanted, turned), *_lea(wanted, given, shared)),
    ]


def _muc(sizes: Sizes, shared: Shared) -> tuple[float, float]:
    """Count common links: common mentions minus the parts into which the other side splits them."""
    return sum(shared.values()) - len(shared), sum(sizes) - len(sizes)


def _b3(sizes: Sizes, shared: Shared) -> tuple[float, float]:
    return sum(count * count / sizes[one] for (one, _), count in shared.items()), sum(sizes)


def _ceaf(wanted: Sizes, given: Sizes, shared: Shared) -> tuple[float, float, float, float]:
    alike = {(a, b): 2 * count / (wanted[a] + given[b]) for (a, b), count in shared.items()}
    best = sum(best_total(matrix) for matrix in _components(alike))
    return best, len(given), best, len(wanted)


def _lea(sizes: Sizes, others: Sizes, shared: Shared) -> tuple[float, float]:
    """A cluster of one mention has one link, to itself; it is found if the other side has the same cluster."""
    total = 0.0
    for (one, other), count in shared.items():
        if sizes[one] == 1:
            total += others[other] == 1
        else:
            total += sizes[one] * _links(count) / _links(sizes[one])
    return total, sum(sizes)


def _links(mentions: int) -> int:
    return mentions * (mentions - 1) // 2


# ---- alignment of clusters


def _components(alike: dict[tuple[int, int], float]) -> Iterator[Floats]:
    """Yield the matrix of each connected component of overlapping clusters; most are tiny."""
    neighbours: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for row, column in alike:
        neighbours.setdefault(("row", row), []).append(("column", column))
        neighbours.setdefault(("column", column), []).append(("row", row))
    seen: set[tuple[str, int]] = set()
    for begin in neighbours:
        if begin in seen:
            continue
        seen.add(begin)
        together = [begin]
        for node in together:  # grows during the loop
            new = [each for each in dict.fromkeys(neighbours[node]) if each not in seen]
            seen.update(new)
            together += new
        rows, columns = ([number for kind, number in together if kind == name] for name in ("row", "column"))
        yield np.array([[alike.get((row, column), 0.0) for column in columns] for row in rows])


def best_total(values: Floats) -> float:
    """Return the largest sum of non-negative values (rows, columns) such that no two share a row or a column.

    Shortest augmenting paths (the Hungarian method of Jonker and Volgenant), row by row.

    >>> best_total(np.array([[3.0, 2.0], [2.0, 0.0], [0.0, 1.0]]))
    4.0
    """
    costs = -(values if values.shape[0] <= values.shape[1] else values.T)
    rows, columns = costs.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)  # the row of each column
    for row in range(rows):
        _insert(row, costs, row_price, column_price, owner)
    taken = np.flatnonzero(owner >= 0)
    return -float(costs[owner[taken], taken].sum())


def _insert(row: int, costs: Floats, row_price: Floats, column_price: Floats, owner: NDArray[np.int64]) -> None:
    """Assign a column to a row; other rows change theirs if the sum gains."""
    columns = costs.shape[1]
    distance, before, done = np.full(columns, np.inf), np.full(columns, -1), np.zeros(columns, dtype=bool)
    length, last, current = 0.0, -1, row
    while True:
        through = length + costs[current] - row_price[current] - column_price
        nearer = ~done & (through < distance)
        distance[nearer], before[nearer] = through[nearer], last
        last = int(np.where(done, np.inf, distance).argmin())
        length = float(distance[last])
        if owner[last] < 0:
            break
        done[last] = True
        current = int(owner[last])
    row_price[row] += length
    passed = np.flatnonzero(done)
    row_price[owner[passed]] += length - distance[passed]
    column_price[passed] -= length - distance[passed]
    while last >= 0:
        previous = int(before[last])
        owner[last] = owner[previous] if previous >= 0 else row
        last = previous
