"""BiDAF against its equations, one paragraph at a time and without masks; spans and totals against all of them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.networks import bidaf as module
from polyseme.nn.networks.bidaf import Bidaf, Pair, Trilinear, best_spans, shared_log_total

OWNER = torch.tensor([0, 0, 1, 2, 3, 3, 3])
LENGTHS = torch.tensor([3, 1, 0, 2]), torch.tensor([5, 2, 1, 4, 0, 3, 5])
MASKS = torch.arange(3) < LENGTHS[0][:, None], torch.arange(5) < LENGTHS[1][:, None]


def words(dim: int = 4) -> Pair:
    """(4, 3, dim) and (7, 5, dim), with 99 on padding."""
    generator = torch.Generator().manual_seed(1)
    one, two = (torch.randn(*mask.shape, dim, generator=generator).masked_fill(~mask.unsqueeze(2), 99.0) for mask in MASKS)
    return one, two


def network(**options: object) -> Bidaf:
    torch.manual_seed(0)
    return Bidaf(4, hidden_size=3, **options)  # type: ignore[arg-type]


def trilinear(score: Trilinear, a: Tensor, b: Tensor) -> Tensor:
    weights = torch.cat([score.first, score.second, score.both])
    return torch.stack([torch.stack([weights @ torch.cat([x, y, x * y]) for y in b]) for x in a])


def normalised(words: Tensor) -> Tensor:
    """Each word with mean 0 and spread 1."""
    rest = words - words.mean(1, keepdim=True)
    return rest / (rest.square().mean(1, keepdim=True) + 1e-5).sqrt()


def plain(net: Bidaf, question: Tensor, paragraph: Tensor, extra: Pair | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """One question (words, inputs) and one paragraph, from the paper's equations."""
    q, h = (net.encoder.layers[0](text[None])[0][0] for text in (question, paragraph))
    if net.own:
        q, h = (torch.cat([x, normalised(text[:, : net.own])], 1) for x, text in ((q, question), (h, paragraph)))
    if extra is not None:
        q, h = torch.cat([q, extra[0]], 1), torch.cat([h, extra[1]], 1)
    scores = trilinear(net.biattention.score, h, q)
    c = torch.softmax(scores, 1) @ q
    p = torch.softmax(scores.max(1).values, 0) @ h
    x = net.projection(torch.cat([h, c, h * c, p * c], 1))
    y = net.modelling.layers[0](x[None])[0][0]
    scores = trilinear(net.self_attention.score, y, y)
    scores.fill_diagonal_(-torch.inf)
    c = torch.softmax(scores, 1) @ y if len(y) > 1 else torch.zeros_like(y)
    x = x + net.self_projection(torch.cat([y, c, y * c], 1))
    first = net.start_states.layers[0](x[None])[0][0]
    second = net.end_states.layers[0](torch.cat([first, x], 1)[None])[0][0]
    start, end = net.start(first)[:, 0], net.end(second)[:, 0]
    if net.none is None:
        return start, end, None
    own = torch.softmax(net.none.pool.score(x)[:, 0], 0)
    means = torch.cat([torch.softmax(start, 0) @ first, torch.softmax(end, 0) @ second, own @ x])
    return start, end, net.none.score(means)[0]


@pytest.mark.parametrize("none", [False, True])
@pytest.mark.parametrize(  # self-attention at once, and two words at a time; slow: fewer inputs at a time
    ("own", "output_inputs", "cells"),
    [
        *((0, 0, 1 << 24), (0, 2, 1 << 24), (3, 0, 1 << 24), (4, 2, 1 << 24), (4, 2, 70)),
        *(pytest.param(*inputs, 70, marks=pytest.mark.slow) for inputs in ((0, 0), (0, 2), (3, 0))),
    ],
)
def test_as_the_equations_say(none: bool, own: int, output_inputs: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", cells)
    net = network(own=own, output_inputs=output_inputs, no_answer=none).eval()
    extra = words(output_inputs) if output_inputs else None
    with torch.no_grad():
        found = net(words(), MASKS, OWNER, LENGTHS, extra)
        again = net(words(), MASKS, OWNER, at_output=extra)
    assert torch.equal(again.start, found.start) and (found.none is not None) is none
    assert bool((found.start[~MASKS[1]] == MASKED_SCORE).all()) and bool((found.end[~MASKS[1]] == MASKED_SCORE).all())
    assert bool(torch.isfinite(found.start).all())
    for row, (owner, length) in enumerate(zip(OWNER.tolist(), LENGTHS[1].tolist(), strict=True)):

        def cut(pair: Pair, row: int = row, owner: int = owner, length: int = length) -> Pair:
            return pair[0][owner : owner + 1, : LENGTHS[0][owner]], pair[1][row : row + 1, :length]

        with torch.no_grad():
            alone = net(cut(words()), cut(MASKS), torch.tensor([0]), at_output=None if extra is None else cut(extra))
        torch.testing.assert_close(alone.start[0], found.start[row, :length], atol=1e-6, rtol=0.0)
        torch.testing.assert_close(alone.end[0], found.end[row, :length], atol=1e-6, rtol=0.0)
        if none:
            torch.testing.assert_close(alone.none[0], found.none[row], atol=1e-6, rtol=0.0)
        if length and LENGTHS[0][owner]:
            beside = None if extra is None else tuple(each[0] for each in cut(extra))
            expected = plain(net, *(text[0] for text in cut(words())), beside)  # type: ignore[arg-type]
            torch.testing.assert_close(found.start[row, :length], expected[0], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(found.end[row, :length], expected[1], atol=1e-5, rtol=1e-5)
            if none:
                torch.testing.assert_close(found.none[row], expected[2], atol=1e-5, rtol=1e-5)


def test_gradients_reach_everything_but_padding() -> None:
    net = network(own=3, output_inputs=2, no_answer=True)
    pairs = [words(), words(2)]
    for text in (text for pair in pairs for text in pair):
        text.requires_grad_()
    found = net(pairs[0], MASKS, OWNER, LENGTHS, pairs[1])
    loss = found.start.logsumexp(1) + found.end.logsumexp(1) + found.none
    loss[LENGTHS[1] > 0].sum().backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None and bool(torch.isfinite(parameter.grad).all()), name
        assert bool(parameter.grad.any()) or name == "self_attention.score.first", name  # a constant under its softmax
    for pair in pairs:
        for text, mask in zip(pair, MASKS, strict=True):
            assert text.grad is not None and bool(torch.isfinite(text.grad).all())
            assert bool(text.grad[mask].any()) and not text.grad[~mask].any()


def test_dropout_is_for_training_and_the_same_for_all_words() -> None:
    net = network(dropout=0.5)
    assert not torch.equal(net(words(), MASKS, OWNER).start, net(words(), MASKS, OWNER).start)
    net.eval()
    assert torch.equal(net(words(), MASKS, OWNER).start, net(words(), MASKS, OWNER).start)


def test_wrong_widths_are_told() -> None:
    with pytest.raises(UsageError, match=r"takes output vectors of size 2; got 0"):
        network(output_inputs=2)(words(), MASKS, OWNER)
    with pytest.raises(UsageError, match=r"own is 5; allowed: 0 to 4"):
        network(own=5)


def test_the_trilinear_score_by_its_definition() -> None:
    torch.manual_seed(0)
    score, a, b = Trilinear(4), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    with torch.no_grad():
        score.both.normal_()  # it begins with equal weights, which would hide a wrong order
    expected = torch.stack([trilinear(score, *texts) for texts in zip(a, b, strict=True)])
    torch.testing.assert_close(score(a, b), expected)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_equal_words_find_each_other_before_anything_is_learned(scale: float) -> None:
    generator = torch.Generator().manual_seed(1)
    table = scale * torch.randn(40, 200, generator=generator)  # vectors of any size
    question, paragraph = torch.tensor([[3, 7, 11, 19]]), torch.tensor([[30, 7, 31, 19, 3, 32, 11]])
    masks = torch.ones(1, 4, dtype=torch.bool), torch.ones(1, 7, dtype=torch.bool)
    torch.manual_seed(0)
    net, scores = Bidaf(200, own=200, hidden_size=10).eval(), []
    net.biattention.score.register_forward_hook(lambda _module, _inputs, found: scores.append(found))
    with torch.no_grad():
        net((table[question], table[paragraph]), masks, torch.tensor([0]))
    weights = scores[0][0].softmax(1)
    equal = paragraph[0][:, None] == question[0]
    assert bool((weights[equal] > 0.9).all()) and int(equal.sum()) == 4


def test_totals_over_paragraphs() -> None:
    scores = torch.randn(4, 3)
    expected = torch.stack([some.exp().sum().log() for some in (scores[:1], scores[1:3], scores[3:])])
    torch.testing.assert_close(shared_log_total(scores, [1, 2, 1]), expected)
    torch.testing.assert_close(shared_log_total(scores[:, 0], [4]), scores[:, 0].logsumexp(0)[None])
    torch.testing.assert_close(shared_log_total(scores, [1] * 4), scores.logsumexp(1))


@pytest.mark.parametrize("longest", [1, 2, 4, 99])
def test_the_best_of_all_spans(longest: int) -> None:
    torch.manual_seed(longest)
    start, end = torch.randn(6, 5), torch.randn(6, 5)
    start[0], end[0] = torch.arange(5.0), -torch.arange(5.0)  # the end lies before the start
    score, first, last = best_spans(start, end, longest)
    for row in range(6):
        spans = [(a, b) for a, b in itertools.product(range(5), repeat=2) if a <= b < a + longest]
        best = max(spans, key=lambda span: float(start[row, span[0]] + end[row, span[1]]))
        assert float(score[row]) == pytest.approx(float(start[row, best[0]] + end[row, best[1]]))
        if row:
            assert (int(first[row]), int(last[row])) == best
        assert first[row] <= last[row] < first[row] + longest
