"""Scores of clusters: published examples worked out by hand, and each measure against its definition, written down plainly."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.bootstrap import paired_bootstrap
from polyseme.metrics.coreference import (
    MEASURES,
    Clusters,
    PrecisionRecall,
    best_total,
    conll_score,
    coreference_scores_from_sums,
    coreference_statistics,
)

Side = list[set[int]]


def coreference_scores(
    gold: list[Clusters], predicted: list[Clusters], *, singletons: bool = False
) -> dict[str, PrecisionRecall]:
    """Each measure over all documents."""
    return coreference_scores_from_sums(coreference_statistics(gold, predicted, singletons=singletons).sum(0))


def of(gold: list[str], predicted: list[str], *, singletons: bool = False) -> dict[str, tuple[float, float]]:
    """Precision and recall of each measure for one document, whose mentions are letters."""
    found = coreference_scores([gold], [predicted], singletons=singletons)
    return {name: (each.precision, each.recall) for name, each in found.items()}


# ---- by hand


def test_the_example_of_the_reference_scorer() -> None:
    """Pradhan et al. 2014, figure 1: mentions h and i are invented, e is missed."""
    found = of(["abc", "defg"], ["ab", "cd", "fghi"])
    # links: abc falls into ab, c and defg into d, e, fg: 1 + 1 of 2 + 3; the answer's ab whole, cd and fghi in pieces
    assert found["muc"] == pytest.approx((2 / 5, 2 / 5))
    # squares of what is shared: ab 2, c 1, d 1, fg 2
    assert found["b3"] == pytest.approx(((4 / 2 + 1 / 2 + 1 / 2 + 4 / 4) / 8, (4 / 3 + 1 / 3 + 1 / 4 + 4 / 4) / 7))
    # abc with ab, 4 / 5; defg with fghi, 4 / 8
    assert found["ceaf"] == pytest.approx((1.3 / 3, 1.3 / 2))
    # Moosavi and Strube 2016: ab of abc is 1 of 3 links, fg of defg 1 of 6; backwards ab 1 of 1, fg of fghi 1 of 6
    assert found["lea"] == pytest.approx(((2 * 1 + 4 / 6) / 8, (3 / 3 + 4 / 6) / 7))


LUO = ["12345", "67", "89ABC"]


@pytest.mark.parametrize(
    ("answer", "muc", "b3", "ceaf"),
    [  # Luo 2005, table 1: F1 of MUC, B3, and CEAF by phi 4
        (["12345", "6789ABC"], (9 / 10, 9 / 9), ((5 + (4 + 25) / 7) / 12, 1.0), ((1 + 10 / 12) / 2, (1 + 10 / 12) / 3)),
        (["1234589ABC", "67"], (9 / 10, 9 / 9), ((50 / 10 + 2) / 12, 1.0), ((1 + 10 / 15) / 2, (1 + 10 / 15) / 3)),
        (["123456789ABC"], (9 / 11, 9 / 9), ((25 + 4 + 25) / 12 / 12, 1.0), (10 / 17, 10 / 17 / 3)),
        ([*"123456789ABC"], (0, 0), (1.0, (1 + 1 + 1) / 12), ((1 / 3 + 2 / 3 + 1 / 3) / 12, (1 / 3 + 2 / 3 + 1 / 3) / 3)),
    ],
)
def test_the_table_of_luo(answer: list[str], muc: tuple, b3: tuple, ceaf: tuple) -> None:
    found = of(LUO, answer, singletons=True)
    assert found["muc"] == pytest.approx(muc) and found["b3"] == pytest.approx(b3) and found["ceaf"] == pytest.approx(ceaf)


def test_the_numbers_that_luo_prints() -> None:
    answers = [["12345", "6789ABC"], ["1234589ABC", "67"], ["123456789ABC"], [*"123456789ABC"]]
    f1 = [coreference_scores([LUO], [answer], singletons=True) for answer in answers]
    assert [round(each["muc"].f1, 3) for each in f1] == [0.947, 0.947, 0.9, 0.0]
    assert [round(each["b3"].f1, 3) for each in f1] == [0.865, 0.737, 0.545, 0.4]
    assert [round(each["ceaf"].f1, 3) for each in f1] == [0.733, 0.667, 0.294, 0.178]


def test_singletons_count_only_where_they_are_asked_for() -> None:
    gold, answer = ["ab", "c", "d"], ["ab", "c", "e"]
    assert set(of(gold, answer).values()) == {(1.0, 1.0)}
    found = of(gold, answer, singletons=True)
    assert found["muc"] == (1.0, 1.0)  # knows links only
    assert found["b3"] == found["lea"] == pytest.approx((3 / 4, 3 / 4)) and found["ceaf"] == pytest.approx((2 / 3, 2 / 3))
    # a mention alone is not the same as one that is linked
    assert of(["a", "bc"], ["ab", "c"], singletons=True)["lea"] == (0.0, 0.0)


def test_nothing_and_everything() -> None:
    for gold, answer in ((["ab"], []), ([], ["ab"]), ([], []), (["ab"], ["cd"]), (["a"], ["a"])):
        assert set(of(gold, answer).values()) == {(0.0, 0.0)}
    found = coreference_scores([["abc", "de"]], [["ed", "cab"]])
    assert all((each.precision, each.recall, each.f1) == (1.0, 1.0, 1.0) for each in found.values())
    assert coreference_statistics([], []).shape == (0, 16)


def test_refusals() -> None:
    with pytest.raises(UsageError, match="1 predictions for 2 documents"):
        coreference_scores([["ab"], ["cd"]], [["ab"]])
    with pytest.raises(UsageError, match="a mention is in two clusters"):
        coreference_scores([["ab"]], [["ab", "bc"]])


# ---- by definition


def drawn(source: random.Random) -> Side:
    """A partition of some of ten mentions."""
    clusters: dict[int, set[int]] = {}
    for mention in range(10):
        if source.random() < 0.8:
            clusters.setdefault(source.randrange(5), set()).add(mention)
    return list(clusters.values())


def muc_recall(gold: Side, other: Side) -> tuple[float, float]:
    right = wanted = 0
    for cluster in gold:
        pieces = [cluster & each for each in other if cluster & each]
        lost = cluster - set().union(*other)
        right += len(cluster) - len(pieces) - len(lost)
        wanted += len(cluster) - 1
    return right, wanted


def b3_recall(gold: Side, other: Side) -> tuple[float, float]:
    total = 0.0
    for cluster in gold:
        for mention in cluster:
            answered = next((each for each in other if mention in each), set())
            total += len(cluster & answered) / len(cluster)
    return total, sum(map(len, gold))


def ceaf_best(gold: Side, other: Side) -> float:
    few, many = sorted((gold, other), key=len)
    ways = itertools.permutations(many, len(few))
    return max(sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(few, way, strict=True)) for way in ways)


def lea_recall(gold: Side, other: Side) -> tuple[float, float]:
    def links(cluster: set[int]) -> set[tuple[int, int]]:
        return set(itertools.combinations(sorted(cluster), 2)) or {(mention, mention) for mention in cluster}

    answered = set().union(*(links(each) for each in other))
    total = sum(len(each) * len(links(each) & answered) / len(links(each)) for each in gold)
    return total, sum(map(len, gold))


def test_every_measure_is_its_definition() -> None:
    source = random.Random(0)
    for _ in range(300):
        gold, answer = drawn(source), drawn(source)
        sums = coreference_statistics([gold], [answer], singletons=True)[0].reshape(4, 4)
        best = ceaf_best(gold, answer)
        expected = [
            [*muc_recall(answer, gold), *muc_recall(gold, answer)],
            [*b3_recall(answer, gold), *b3_recall(gold, answer)],
            [best, len(answer), best, len(gold)],
            [*lea_recall(answer, gold), *lea_recall(gold, answer)],
        ]
        np.testing.assert_allclose(sums, expected, atol=1e-12)
        some = [[each for each in side if len(each) > 1] for side in (gold, answer)]
        without = coreference_statistics([gold], [answer])
        np.testing.assert_allclose(without, coreference_statistics([some[0]], [some[1]], singletons=True))


def test_pairing_is_the_best_there_is() -> None:
    source = np.random.default_rng(0)
    for _ in range(200):
        values = source.integers(0, 6, size=source.integers(1, 6, size=2)) / 5
        few, many = sorted(values.shape)
        matrix = values if values.shape[0] == few else values.T
        expected = max(sum(matrix[range(few), way]) for way in itertools.permutations(range(many), few))
        assert best_total(values) == pytest.approx(expected)


def test_pairing_many() -> None:
    optimize = pytest.importorskip("scipy.optimize", reason="scipy, a second opinion, is not installed")
    values = np.random.default_rng(1).random((150, 220))
    values[values < 0.7] = 0.0
    rows, columns = optimize.linear_sum_assignment(-values)
    assert best_total(values) == pytest.approx(values[rows, columns].sum())


# ---- several documents


def test_sums_go_over_documents() -> None:
    gold, answers = [["abc", "defg"], ["ab"]], [["ab", "cd", "fghi"], ["ab"]]
    sums = coreference_statistics(gold, answers)
    assert sums.shape == (2, 16)
    found = coreference_scores_from_sums(sums.sum(0))
    assert list(found) == list(MEASURES)
    assert found["muc"].recall == pytest.approx(3 / 6) and found["ceaf"].precision == pytest.approx(2.3 / 4)
    mean = (found["muc"].f1 + found["b3"].f1 + found["ceaf"].f1) / 3
    assert float(conll_score(sums.sum(0))) == pytest.approx(mean)
    np.testing.assert_allclose(conll_score(np.stack([sums.sum(0), 0 * sums[0]])), [mean, 0.0])


def test_two_systems_can_be_compared() -> None:
    gold = [["abc", "de"]] * 20
    old, new = [["ab", "de"]] * 20, [["ab", "de"], ["abc", "de"]] * 10
    score_counts = [coreference_statistics(gold, side) for side in (old, new)]
    found = paired_bootstrap(score_counts[:1], score_counts[1:], score=conll_score, resamples=200)
    assert found.old == pytest.approx(float(conll_score(score_counts[0].sum(0)))) and found.new > found.old and found.p < 0.05
