"""Span ranking: chosen as brute force chooses, in blocks as at once, the loss by hand, gradients where they belong."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.nn.attention import MASKED_SCORE as NONE
from polyseme.nn.networks import span_ranking
from polyseme.nn.networks.span_ranking import (
    DocumentWords,
    SpanRanker,
    SpanRankerConfig,
    SpanRanking,
    best_antecedents,
    chosen_spans,
    distance_class,
)

DIM, OWN = 6, 5


def document(*lengths: int, seed: int = 0) -> DocumentWords:
    """Random words in sentences of these lengths; every third has no known speaker."""
    source = torch.Generator().manual_seed(seed)
    words = sum(lengths)
    sentences = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths, dtype=torch.int64))
    states, own = (torch.randn(words, dim, generator=source) for dim in (DIM, OWN))
    return DocumentWords(states, own, sentences, torch.arange(words) % 3)


def ranker(**changes: Any) -> SpanRanker:
    torch.manual_seed(1)
    options: dict[str, Any] = {
        "hidden_size": 7,
        "feature_size": 4,
        "max_span_width": 4,
        "spans_per_word": 0.8,
        "max_antecedents": 5,
        "dropout": 0.3,
    }
    network = SpanRanker(DIM, OWN, SpanRankerConfig(**(options | changes))).eval()
    with torch.no_grad():
        network.prior.normal_()
    return network


# ---- spans


def test_every_span_of_a_sentence_is_scored() -> None:
    words, network = document(3, 1, 6), ranker()
    found = network.candidates(words)
    assert found.shape == (10, 4)
    for first, width in itertools.product(range(10), range(4)):
        last = first + width
        if last >= 10 or words.sentences[first] != words.sentences[last]:
            assert found[first, width] == NONE
            continue
        weights = torch.softmax(network.head(words.states[first : last + 1]).squeeze(1), dim=0)
        head = (weights[:, None] * words.own[first : last + 1]).sum(0)
        vector = torch.cat([words.states[first], words.states[last], head, network.width.weight[width]])
        assert float(found[first, width]) == pytest.approx(float(network.mention(vector).detach()), abs=1e-5)
        torch.testing.assert_close(network.vectors(words, torch.tensor([first]), torch.tensor([last]))[0], vector)


def test_choosing_needs_no_dropout() -> None:
    words, network = document(3, 1, 6), ranker()
    expected = network.candidates(words)
    torch.testing.assert_close(network.train().candidates(words), expected)


def brute_force(scores: Tensor, count: int) -> list[tuple[int, int]]:
    """One after another, against all that were chosen."""
    spans = [(first, first + width) for first, width in itertools.product(*map(range, scores.shape))]
    ranked = sorted(spans, key=lambda span: -float(scores[span[0], span[1] - span[0]]))
    found: list[tuple[int, int]] = []
    for a, b in ranked:
        crosses = any(a < c <= b < d or c < a <= d < b for c, d in found)
        if scores[a, b - a] > NONE / 2 and not crosses and len(found) < count:
            found.append((a, b))
    return sorted(found)


@pytest.mark.parametrize("count", [0, 1, 7, 20, 1000])
def test_spans_are_chosen_as_brute_force_does(count: int) -> None:
    for seed in range(10):
        torch.manual_seed(seed)
        scores = torch.randn(25, 5)
        scores[torch.arange(25)[:, None] + torch.arange(5) >= 25] = NONE
        scores[torch.rand(25, 5) < 0.1] = NONE
        first, last = chosen_spans(scores, count)
        assert list(zip(first.tolist(), last.tolist(), strict=True)) == brute_force(scores, count)


def test_what_is_wanted_is_kept() -> None:
    words, network = document(5, 7, 2), ranker(spans_per_word=0.3)
    before = network(words)
    wanted = torch.tensor([[0, 2], [2, 4], [5, 10], [4, 5], [13, 13]])  # crosses the first; too long; leaves its sentence
    found = network(words, wanted)
    spans = set(zip(found.first.tolist(), found.last.tolist(), strict=True))
    assert len(found.first) == len(before.first) + 5 == 10 and {(0, 2), (13, 13)} <= spans
    assert set(zip(before.first.tolist(), before.last.tolist(), strict=True)) - spans <= {(1, 3), (2, 3), (2, 4)}  # that cross
    assert not spans & {(2, 4), (5, 10), (4, 5)} and bool(found.scores.isfinite().all())
    assert torch.equal(network(words, wanted[:0]).first, before.first)


def test_equal_scores_are_chosen_alike() -> None:
    first, last = chosen_spans(torch.zeros(4, 2).index_fill(0, torch.tensor([3]), NONE), 3)
    assert (first.tolist(), last.tolist()) == ([0, 0, 1], [0, 1, 1])


# ---- antecedents


def coarse(left: Tensor, right: Tensor, mention: Tensor, prior: Tensor) -> Tensor:
    """All pairs at once."""
    steps = torch.arange(len(left))[:, None] - torch.arange(len(left))
    scores = left @ right.T + mention + prior[distance_class(steps.clamp(min=0))]
    return scores.masked_fill(steps <= 0, NONE)


@pytest.mark.parametrize("block", [(512, 4096), (4, 3), (1, 1), (7, 2)])
@pytest.mark.parametrize("count", [1, 5, 100])
def test_antecedents_are_the_best_of_all(monkeypatch: pytest.MonkeyPatch, block: tuple[int, int], count: int) -> None:
    monkeypatch.setattr(span_ranking, "_BLOCK", block)
    torch.manual_seed(0)
    left, right, mention, prior = torch.randn(30, 4), torch.randn(30, 4), torch.randn(30), torch.randn(10)
    found, there = best_antecedents(left, right, mention, prior, count)
    scores = coarse(left, right, mention, prior)
    assert found.shape == (30, min(count, 29)) and there.sum(1).tolist() == [min(place, count) for place in range(30)]
    for place in range(30):
        expected = scores[place].argsort(descending=True)[: min(place, count)]
        assert found[place][there[place]].tolist() == expected.tolist()


@pytest.mark.parametrize("lengths", [(), (1,), (2,), (1, 1), (0, 3)])
def test_little_documents(lengths: tuple[int, ...]) -> None:
    network = ranker(spans_per_word=1.0)
    found = network(document(*lengths))
    words = sum(lengths)
    assert len(found.first) == len(found.links()) == words and found.scores.shape == (words, max(words - 1, 0))
    assert float(found.loss(torch.zeros(words, dtype=torch.int64)).detach()) >= 0


# ---- scores


def by_hand(network: SpanRanker, words: DocumentWords, ranking: SpanRanking) -> Tensor:
    """(spans, antecedents), pair by pair from what the paper says."""
    vectors = network.vectors(words, ranking.first, ranking.last)
    mention = network.mention(vectors).squeeze(1)
    out = torch.full(ranking.scores.shape, NONE)
    for span, place in itertools.product(*map(range, ranking.scores.shape)):
        before = int(ranking.antecedents[span, place])
        if ranking.scores[span, place] <= NONE / 2:
            continue
        who, whom = (int(words.speakers[ranking.first[each]]) for each in (span, before))
        kind = 0 if 0 in (who, whom) else 1 if who == whom else 2
        apart = distance_class(torch.tensor(span - before))
        features = [network.distance.weight[apart], network.speaker.weight[kind]]
        pair = torch.cat([vectors[span], vectors[before], vectors[span] * vectors[before], *features])
        coarse = network.left(vectors[span]) @ network.right(vectors[before]) + network.prior[apart]
        out[span, place] = mention[span] + mention[before] + coarse + network.pair(pair).squeeze()
    return out


def test_scores_of_pairs() -> None:
    words, network = document(5, 7, 2), ranker()
    found = network(words)
    assert len(found.first) == math.ceil(0.8 * 14)
    torch.testing.assert_close(found.scores, by_hand(network, words, found), atol=1e-5, rtol=1e-5)
    scores = network.candidates(words)[found.first, found.last - found.first]
    torch.testing.assert_close(found.mention, scores, atol=1e-5, rtol=1e-5)
    order = list(zip(found.first.tolist(), found.last.tolist(), strict=True))
    assert order == sorted(order)


@pytest.mark.parametrize("cells", [1, 200, 1000])
def test_some_at_a_time_is_the_same(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    words, network = document(9, 3, 14, 8), ranker()
    expected = network(words)
    monkeypatch.setattr(span_ranking, "_CELLS_CPU", cells)
    monkeypatch.setattr(span_ranking, "_BLOCK", (5, 6))
    found = network(words)
    assert torch.equal(found.first, expected.first) and torch.equal(found.last, expected.last)
    assert torch.equal(found.antecedents[found.scores > NONE], expected.antecedents[expected.scores > NONE])
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-5, rtol=1e-5)
    assert found.links() == expected.links()


def test_classes_of_distances() -> None:
    found = distance_class(torch.arange(70)).tolist()
    assert found[:9] == [0, 1, 2, 3, 4, 5, 5, 5, 6] and found[15:17] == [6, 7] and found[63:65] == [8, 9]


# ---- the loss and the links, by hand


def ranking(scores: list[list[float]], antecedents: list[list[int]]) -> SpanRanking:
    count = len(scores)
    places = torch.arange(count)
    return SpanRanking(places, places, torch.zeros(count), torch.tensor(antecedents), torch.tensor(scores))


def test_the_loss_by_hand() -> None:
    found = ranking(
        [[NONE, NONE], [2.0, NONE], [1.0, 3.0], [0.5, -1.0], [1.0, 1.5]],
        [[0, 0], [0, 0], [1, 0], [2, 1], [1, 2]],
    )
    e = math.exp
    # span 1 begins its cluster, as 0 does; 2 goes with 0 or 1; 3 is no mention; 4 has no antecedent among those two
    parts = [0.0, (e(2) + 1, 1), (1 + e(1) + e(3), e(1) + e(3)), (1 + e(0.5) + e(-1), 1), (1 + e(1) + e(1.5), 1)]
    expected = sum(math.log(each[0] / each[1]) for each in parts if each)  # type: ignore[index]
    loss = found.loss(torch.tensor([1, 2, 2, 0, 1]))
    # 2 shares its cluster with 1 alone
    right = expected - math.log((1 + e(1) + e(3)) / (e(1) + e(3))) + math.log((1 + e(1) + e(3)) / e(1))
    assert float(loss) == pytest.approx(right, rel=1e-5)
    both = found.loss(torch.tensor([1, 1, 1, 0, 2]))
    parts[1] = (e(2) + 1, e(2))
    assert float(both) == pytest.approx(sum(math.log(each[0] / each[1]) for each in parts if each), rel=1e-5)  # type: ignore[index]


def test_links() -> None:
    found = ranking([[NONE, NONE], [2.0, NONE], [-1.0, 3.0], [-0.5, 0.0]], [[0, 0], [0, 0], [1, 0], [2, 1]])
    assert found.links() == [-1, 0, 0, -1]


# ---- learning


def test_gradients_go_where_they_belong() -> None:
    words, network = document(6, 6, seed=3), ranker(dropout=0.0)
    states, own = words.states.requires_grad_(), words.own.requires_grad_()
    found = network(words)
    found.loss(torch.arange(len(found.first)) % 3).backward()
    for name, weight in network.named_parameters():
        assert weight.grad is not None and bool(weight.grad.isfinite().all()), name
        assert bool(weight.grad.any()), name
    inside = torch.zeros(12, dtype=torch.bool)
    for first, last in zip(found.first.tolist(), found.last.tolist(), strict=True):
        inside[first : last + 1] = True
    assert states.grad is not None and own.grad is not None
    assert not bool(own.grad[~inside].any()) and bool((own.grad.abs().sum(1) > 0)[inside].all())


def test_gradients_are_those_of_the_loss() -> None:
    """Against small differences."""
    words, network = document(5, 4, seed=2), ranker(dropout=0.0, max_antecedents=50)
    found = network(words)
    cluster = torch.arange(len(found.first)) % 2 + 1
    weight = network.pair[0].weight
    found.loss(cluster).backward()
    step = torch.zeros_like(weight)
    step[2, 3], step[4, 30], step[0, -1] = 4e-3, -4e-3, 4e-3
    with torch.no_grad():
        losses = []
        for sign in (1, -1):
            weight += sign * step
            losses.append(float(network(words).loss(cluster)))
            weight -= sign * step
    assert (losses[0] - losses[1]) / 2 == pytest.approx(float((weight.grad * step).sum()), rel=3e-2)


def test_a_document_is_learned() -> None:
    """The words of a cluster are alike, and no others."""
    torch.manual_seed(0)
    kinds = torch.tensor([1, 0, 2, 0, 1, 0, 2, 1, 0, 2])
    states = torch.eye(3)[kinds] @ torch.randn(3, DIM) + 0.05 * torch.randn(10, DIM)
    words = DocumentWords(states, states[:, :OWN], torch.arange(10) // 5, torch.zeros(10, dtype=torch.int64))
    config = SpanRankerConfig(hidden_size=12, feature_size=4, max_span_width=2, spans_per_word=2.0, dropout=0.0)
    network = SpanRanker(DIM, OWN, config)
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(80):
        found = network(words)
        loss = found.loss(torch.where(found.first == found.last, kinds[found.first], 0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = network(words)
    linked = {(int(found.first[span]), int(found.first[link])) for span, link in enumerate(found.links()) if link >= 0}
    assert {span for span, _ in linked} == {4, 6, 7, 9} and all(kinds[a] == kinds[b] for a, b in linked)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same() -> None:
    words, network = document(9, 3, 14, 8), ranker()
    expected = network(words)
    moved = DocumentWords(*(getattr(words, name).cuda() for name in ("states", "own", "sentences", "speakers")))
    found = network.cuda()(moved)
    assert torch.equal(found.first, expected.first) and torch.equal(found.last, expected.last)
    torch.testing.assert_close(found.scores.cpu(), expected.scores, atol=1e-3, rtol=1e-3)


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="max_span_width is 0; allowed: 1 or more"):
        ranker(max_span_width=0)
    with pytest.raises(ConfigError, match=r"spans_per_word is 0\.0; allowed: above 0"):
        ranker(spans_per_word=0.0)
