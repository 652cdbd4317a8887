"""How well mentions were put together: MUC, B-cubed, CEAF and LEA, and the mean of the first three, which ranks systems.

Each measure is a precision and a recall, and each of these a quotient of sums over documents; so documents can be drawn again
for a bootstrap, and the score of a set is that of the reference scorer (Pradhan et al. 2014), not a mean over documents.

    MUC     links that must be taken away or added (Vilain et al. 1995)
    B3      for each mention, how much of its cluster is its own (Bagga and Baldwin 1998)
    CEAF    clusters are paired one to one, as well as can be, by the share that two have in common, phi 4 (Luo 2005)
    LEA     for each cluster, its links that were found, weighted by its size (Moosavi and Strube 2016)

The truth's mentions and those of the answer need not be the same. Without `singletons` clusters of one mention are left out on
both sides, as in OntoNotes, which has none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError

Floats = NDArray[np.float64]
Clusters = Sequence[Sequence[Hashable]]
"""What is in one cluster means the same; a mention is anything that can be compared."""
MEASURES = ("muc", "b3", "ceaf", "lea")
CONLL = 3
"""The first measures, whose mean ranks systems."""


@dataclass(frozen=True)
class PrecisionRecall:
    """One measure."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def coreference_scores(
    gold: Sequence[Clusters], predicted: Sequence[Clusters], *, singletons: bool = False
) -> dict[str, PrecisionRecall]:
    """Each of `MEASURES`, over all documents.

    >>> found = coreference_scores([["abc", "defg"]], [["ab", "cd", "fghi"]])
    >>> round(found["b3"].recall, 3), round(found["ceaf"].precision, 3), round(found["lea"].f1, 3)
    (0.417, 0.433, 0.278)
    """
    return coreference_scores_from_sums(coreference_statistics(gold, predicted, singletons=singletons).sum(0))


def coreference_statistics(gold: Sequence[Clusters], predicted: Sequence[Clusters], *, singletons: bool = False) -> Floats:
    """(documents, 16): for each measure the numerators and denominators of its precision and recall, for `conll_score`."""
    if len(gold) != len(predicted):
        raise UsageError(f"there are {len(gold)} documents and {len(predicted)} answers; expected one for each")
    pairs = [(_sets(a, singletons), _sets(b, singletons)) for a, b in zip(gold, predicted, strict=True)]
    return np.array([_statistics(a, b) for a, b in pairs], dtype=np.float64).reshape(-1, 4 * len(MEASURES))


def coreference_scores_from_sums(sums: Floats) -> dict[str, PrecisionRecall]:
    """Each of `MEASURES`, from sums (16,) over documents."""
    shares = _shares(sums.reshape(len(MEASURES), 4))
    return {name: PrecisionRecall(*map(float, each)) for name, each in zip(MEASURES, shares, strict=True)}


def conll_score(sums: Floats) -> Floats:
    """The mean F1 of MUC, B3 and CEAF, from sums (..., 16) over documents: (...).

    >>> sums = coreference_statistics([["abc", "defg"]], [["ab", "cd", "fghi"]]).sum(0)
    >>> round(float(conll_score(sums)), 4)  # 0.4, 5 / 11 and 0.52
    0.4582
    """
    measures = sums.reshape(*sums.shape[:-1], len(MEASURES), 4)[..., :CONLL, :]
    shares = _shares(measures)
    both = shares.sum(-1)
    f1: Floats = np.where(both > 0, 2 * shares.prod(-1) / np.where(both > 0, both, 1), 0.0)
    mean: Floats = f1.mean(-1)
    return mean


def _shares(sums: Floats) -> Floats:
    """(..., 2) precision and recall, from (..., 4): numerators and denominators; 0 of nothing is 0."""
    shares: Floats = sums[..., 0::2] / np.where(sums[..., 1::2] > 0, sums[..., 1::2], 1)
    return shares


def _sets(clusters: Clusters, singletons: bool) -> list[frozenset[Hashable]]:
    found = [frozenset(cluster) for cluster in clusters]
    if len(frozenset().union(*found)) != sum(map(len, found)):
        raise UsageError("a mention is in two clusters; a mention belongs to one")
    return [cluster for cluster in found if len(cluster) > (0 if singletons else 1)]


# ---- one document

Sizes = Sequence[int]
Shared = dict[tuple[int, int], int]
"""How many mentions clusters have in common: number of the right one, of the answered one."""


def _statistics(gold: Sequence[frozenset[Hashable]], predicted: Sequence[frozenset[Hashable]]) -> list[float]:
    wanted, given = list(map(len, gold)), list(map(len, predicted))
    owner = {mention: number for number, cluster in enumerate(predicted) for mention in cluster}
    shared: Shared = {}
    for number, cluster in enumerate(gold):
        for mention in cluster & owner.keys():
            place = number, owner[mention]
            shared[place] = shared.get(place, 0) + 1
    turned = {(b, a): count for (a, b), count in shared.items()}
    return [
        *(*_muc(given, turned), *_muc(wanted, shared)),
        *(*_b3(given, turned), *_b3(wanted, shared)),
        *_ceaf(wanted, given, shared),
        *(*_lea(given, wanted, turned), *_lea(wanted, given, shared)),
    ]


def _muc(sizes: Sizes, shared: Shared) -> tuple[float, float]:
    """Links that the other side has, too: mentions that both have, less the pieces that the other side cuts them into."""
    return sum(shared.values()) - len(shared), sum(sizes) - len(sizes)


def _b3(sizes: Sizes, shared: Shared) -> tuple[float, float]:
    return sum(count * count / sizes[one] for (one, _), count in shared.items()), sum(sizes)


def _ceaf(wanted: Sizes, given: Sizes, shared: Shared) -> tuple[float, float, float, float]:
    alike = {(a, b): 2 * count / (wanted[a] + given[b]) for (a, b), count in shared.items()}
    best = sum(best_total(matrix) for matrix in _apart(alike))
    return best, len(given), best, len(wanted)


def _lea(sizes: Sizes, others: Sizes, shared: Shared) -> tuple[float, float]:
    """The one link of a cluster of one mention is to itself: it is found where the other side has the same cluster."""
    total = 0.0
    for (one, other), count in shared.items():
        if sizes[one] == 1:
            total += others[other] == 1
        else:
            total += sizes[one] * _links(count) / _links(sizes[one])
    return total, sum(sizes)


def _links(mentions: int) -> int:
    return mentions * (mentions - 1) // 2


# ---- pairing clusters


def _apart(alike: dict[tuple[int, int], float]) -> Iterator[Floats]:
    """Matrices of clusters that have anything to do with each other, directly or through others: most are tiny."""
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
        for node in together:  # grows on the way
            new = [each for each in dict.fromkeys(neighbours[node]) if each not in seen]
            seen.update(new)
            together += new
        rows, columns = ([number for kind, number in together if kind == name] for name in ("row", "column"))
        yield np.array([[alike.get((row, column), 0.0) for column in columns] for row in rows])


def best_total(values: Floats) -> float:
    """The greatest sum of values (rows, columns), none below 0, of which no two share a row or a column.

    Shortest augmenting paths (the Hungarian method as Jonker and Volgenant have it), one row after another.

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
    """Give a column to a row; others change theirs where the sum gains by it."""
    columns = costs.shape[1]
    distance, before, done = np.full(columns, np.inf), np.full(columns, -1), np.zeros(columns, dtype=bool)
    way, last, current = 0.0, -1, row
    while True:
        through = way + costs[current] - row_price[current] - column_price
        nearer = ~done & (through < distance)
        distance[nearer], before[nearer] = through[nearer], last
        last = int(np.where(done, np.inf, distance).argmin())
        way = float(distance[last])
        if owner[last] < 0:
            break
        done[last] = True
        current = int(owner[last])
    row_price[row] += way
    passed = np.flatnonzero(done)
    row_price[owner[passed]] += way - distance[passed]
    column_price[passed] -= way - distance[passed]
    while last >= 0:
        previous = int(before[last])
        owner[last] = owner[previous] if previous >= 0 else row
        last = previous
