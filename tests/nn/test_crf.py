"""The CRF against all paths written out, and against pytorch-crf where that is installed."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.crf import Crf

LENGTHS = [4, 1, 0, 3, 2]
# tags O, B, I: I only behind B or I, and no sentence starts with it
ALLOWED = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
START = torch.tensor([True, True, False])
END = torch.tensor([True, False, True])


def random_crf(tags: int = 3, **constraints: Tensor) -> Crf:
    torch.manual_seed(0)
    crf = Crf(tags, **constraints).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def random_batch(lengths: list[int] = LENGTHS, tags: int = 3, size: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    scores = size * torch.randn(len(lengths), max(lengths), tags, generator=generator, dtype=torch.float64)
    targets = torch.randint(tags, scores.shape[:2], generator=generator)
    return scores, targets, torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


@torch.no_grad()
def all_paths(crf: Crf, scores: Tensor) -> dict[tuple[int, ...], float]:
    """The score of each allowed path of one sentence (words, tags), added up in Python."""
    found = {}
    for path in itertools.product(range(scores.shape[1]), repeat=len(scores)):
        moves = list(itertools.pairwise(path))
        allowed = crf.allowed_start[path[0]] and crf.allowed_end[path[-1]] and all(crf.allowed[move] for move in moves)
        if allowed:
            total = float(crf.start[path[0]]) + float(crf.end[path[-1]])
            total += sum(float(scores[word, tag]) for word, tag in enumerate(path))
            found[path] = total + sum(float(crf.transitions[move]) for move in moves)
    return found


CONSTRAINTS: list[dict[str, Tensor]] = [{}, {"allowed": ALLOWED, "allowed_start": START, "allowed_end": END}]


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_all_paths_written_out(constraints: dict[str, Tensor]) -> None:
    crf = random_crf(**constraints)
    scores, _, mask = random_batch()
    if constraints:
        scores[1, 0] = torch.tensor([0.0, 9.0, 9.0])  # of one word, where only O may stand
    decoded, marginals = crf.decode(scores, mask), crf.marginals(scores, mask)
    for row, length in enumerate(LENGTHS):
        assert not marginals[row, length:].any()
        if length == 0:
            assert decoded[row] == []
            continue
        paths = all_paths(crf, scores[row, :length])
        total = math.log(sum(math.exp(score) for score in paths.values()))
        best = max(paths, key=lambda path: paths[path])
        assert decoded[row] == list(best)
        for path, score in paths.items():
            targets = torch.full((len(LENGTHS), max(LENGTHS)), -100)  # as losses elsewhere mark padding
            targets[:, : len(path)] = torch.tensor(path)
            loss = crf.loss(scores[row : row + 1], targets[row : row + 1], mask[row : row + 1])
            assert loss.item() == pytest.approx(total - score)
        for word, tag in itertools.product(range(length), range(3)):
            expected = sum(math.exp(score - total) for path, score in paths.items() if path[word] == tag)
            assert marginals[row, word, tag].item() == pytest.approx(expected, abs=1e-9)


def test_marginals_are_the_gradient_of_the_total() -> None:
    crf = random_crf(allowed=ALLOWED)
    scores, _, mask = random_batch()
    scores.requires_grad_()
    zeros = torch.zeros(mask.shape, dtype=torch.long)
    of_path = torch.zeros_like(scores)
    of_path[..., 0] = mask.double()
    crf.loss(scores, zeros, mask).sum().backward()
    assert scores.grad is not None
    torch.testing.assert_close(crf.marginals(scores, mask), scores.grad + of_path)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_gradients_by_finite_differences(constraints: dict[str, Tensor]) -> None:
    crf = random_crf(**constraints)
    scores, _, mask = random_batch()
    targets = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 0], [0, 0, 0, 0], [1, 2, 2, 0], [1, 0, 0, 0]])  # all allowed
    names = ("transitions", "start", "end")

    def loss(scores: Tensor, *values: Tensor) -> Tensor:
        call = (crf, dict(zip(names, values, strict=True)))
        return torch.func.functional_call(*call, (scores, targets, mask))

    crf.forward = crf.loss  # type: ignore[method-assign, assignment]
    values = [getattr(crf, name).detach().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(loss, (scores.requires_grad_(), *values))


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_no_path_breaks_the_constraints(size: float) -> None:
    crf = random_crf(allowed=ALLOWED, allowed_start=START, allowed_end=END).float()
    lengths = [*range(1, 13)] * 20
    scores, _, mask = random_batch(lengths, size=size)
    scores[..., 2] += 3 * size  # the network wants I everywhere
    for row in crf.decode(scores.float(), mask):
        assert START[row[0]] and END[row[-1]] and all(ALLOWED[move] for move in itertools.pairwise(row))
    marginals = crf.marginals(scores.float(), mask)
    assert not marginals[:, 0, 2].any() and bool(torch.isfinite(marginals).all())
    torch.testing.assert_close(marginals.sum(2), mask.float())


def test_the_only_allowed_path() -> None:
    moves = torch.zeros(3, 3, dtype=torch.bool)
    moves[0, 1] = moves[1, 2] = moves[2, 0] = True
    crf = random_crf(allowed=moves, allowed_start=torch.tensor([True, False, False])).float()
    scores = random_batch([7, 5], size=50.0)[0].float().requires_grad_()
    mask = torch.arange(7) < torch.tensor([[7], [5]])
    targets = torch.tensor([[0, 1, 2, 0, 1, 2, 0]] * 2)
    loss = crf.loss(scores, targets, mask)
    torch.testing.assert_close(loss, torch.zeros(2), atol=1e-3, rtol=0.0)
    loss.sum().backward()
    assert scores.grad is not None and scores.grad.abs().max() < 1e-3
    assert crf.decode(scores, mask) == [[0, 1, 2, 0, 1, 2, 0], [0, 1, 2, 0, 1]]
    torch.testing.assert_close(crf.marginals(scores, mask)[0], torch.eye(3)[targets[0]])
    wrong = crf.loss(scores, torch.zeros_like(targets), mask)
    assert bool((wrong > 1e5).all()) and bool(torch.isfinite(wrong).all())


def test_padding_and_neighbours_change_nothing() -> None:
    crf = random_crf(allowed=ALLOWED)
    scores, targets, mask = random_batch()
    loss, decoded, marginals = crf.loss(scores, targets, mask), crf.decode(scores, mask), crf.marginals(scores, mask)
    wide_mask = torch.nn.functional.pad(mask, (0, 3))
    wide = torch.full((5, 7, 3), torch.nan, dtype=torch.float64)
    wide[:, :4] = scores.masked_fill(~mask.unsqueeze(2), torch.nan)
    wide.requires_grad_()
    wide_targets = torch.full((5, 7), -100)
    wide_targets[:, :4] = targets.masked_fill(~mask, -1)
    padded = crf.loss(wide, wide_targets, wide_mask)
    torch.testing.assert_close(padded, loss)
    padded.sum().backward()
    assert wide.grad is not None and not wide.grad[~wide_mask].any() and bool(torch.isfinite(wide.grad).all())
    assert crf.decode(wide, wide_mask) == decoded
    torch.testing.assert_close(crf.marginals(wide, wide_mask)[:, :4], marginals)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1), slice(0, length)
        torch.testing.assert_close(crf.loss(scores[one], targets[one], mask[one])[0], loss[row])
        assert crf.decode(scores[one], mask[one]) == [decoded[row]]
        torch.testing.assert_close(crf.marginals(scores[one], mask[one])[0], marginals[row, :length])


def test_no_words() -> None:
    crf = Crf(3)
    scores, mask = torch.zeros(2, 0, 3, requires_grad=True), torch.zeros(2, 0, dtype=torch.bool)
    loss = crf.loss(scores, torch.zeros(2, 0, dtype=torch.long), mask)
    assert loss.tolist() == [0.0, 0.0]
    loss.sum().backward()
    assert crf.decode(scores, mask) == [[], []] and crf.marginals(scores, mask).shape == (2, 0, 3)
    empty = torch.zeros(2, 4, dtype=torch.bool)
    assert crf.loss(torch.randn(2, 4, 3), torch.zeros(2, 4, dtype=torch.long), empty).tolist() == [0.0, 0.0]
    assert crf.decode(torch.randn(2, 4, 3), empty) == [[], []]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_few_bits(kind: torch.dtype) -> None:
    crf = random_crf(allowed=ALLOWED, allowed_start=START).float()
    scores, _, mask = random_batch()
    targets = torch.zeros(mask.shape, dtype=torch.long)
    few = scores.to(kind)
    with torch.autocast("cpu", torch.bfloat16):
        loss, marginals, decoded = crf.loss(few, targets, mask), crf.marginals(few, mask), crf.decode(few, mask)
    assert loss.dtype == marginals.dtype == torch.float32
    torch.testing.assert_close(loss, crf.loss(few.float(), targets, mask))
    torch.testing.assert_close(marginals, crf.marginals(few.float(), mask))
    assert decoded == crf.decode(few.float(), mask)
    torch.testing.assert_close(crf.to(kind).loss(few, targets, mask), loss, atol=0.05, rtol=0.05)


def test_learns_what_follows_what() -> None:
    """Scores say nothing; the tags go round in a circle, and only moves can tell."""
    torch.manual_seed(0)
    crf = Crf(4)
    optimizer = torch.optim.Adam(crf.parameters(), lr=0.1)
    targets = (torch.arange(6) + torch.arange(4)[:, None]) % 4
    mask, scores = torch.ones(4, 6, dtype=torch.bool), torch.zeros(4, 6, 4)
    scores[:, 0] = 5 * torch.eye(4)  # of the first word they tell the tag
    for _ in range(60):
        optimizer.zero_grad()
        loss = crf.loss(scores, targets, mask).mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.5 and crf.decode(scores, mask) == targets.tolist()


def test_constraints_are_not_saved() -> None:
    crf = Crf(3, allowed=ALLOWED)
    assert set(crf.state_dict()) == {"transitions", "start", "end"}
    crf.load_state_dict(Crf(3).state_dict())
    assert torch.equal(crf.allowed, ALLOWED)


def test_pytorch_crf_agrees() -> None:
    torchcrf = pytest.importorskip("torchcrf")
    crf = random_crf(5)
    theirs = torchcrf.CRF(5, batch_first=True).double()
    theirs.transitions.data, theirs.start_transitions.data, theirs.end_transitions.data = crf.transitions, crf.start, crf.end
    scores, targets, mask = random_batch([6, 2, 1, 5], tags=5)
    torch.testing.assert_close(crf.loss(scores, targets, mask), -theirs(scores, targets, mask, reduction="none"))
    assert crf.decode(scores, mask) == theirs.decode(scores, mask)


def test_mistakes() -> None:
    with pytest.raises(UsageError, match=r"allowed is torch.bool of shape \(2, 3\); expected bool of \(3, 3\)"):
        Crf(3, allowed=ALLOWED[:2])
    with pytest.raises(UsageError, match=r"allowed_end is torch.float32 of shape \(3,\)"):
        Crf(3, allowed_end=END.float())
    crf = Crf(2, allowed=torch.zeros(2, 2, dtype=torch.bool))
    assert crf.decode(torch.zeros(1, 1, 2), torch.ones(1, 1, dtype=torch.bool)) in ([[0]], [[1]])
    with pytest.raises(UsageError, match="the constraints allow no path of 2 words"):
        crf.decode(torch.zeros(1, 2, 2), torch.ones(1, 2, dtype=torch.bool))


def test_transitions_that_are_not_learned_stay_zero() -> None:
    """A run may be resumed without the CRF that it had."""
    crf = torch.nn.ModuleDict({"crf": Crf(3, allowed=ALLOWED, learn=False).double()})
    crf.load_state_dict(torch.nn.ModuleDict({"crf": random_crf()}).state_dict())
    assert all(not weight.any() and not weight.requires_grad for weight in crf.parameters())
