"""The kernel of the CRF's sums against the plain ones, through Triton's interpreter where there is no GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.nn import crf as module
from polyseme.nn.crf import FORBIDDEN, Crf, fused_fits, plain_sums

pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = {
    "ragged": [5, 1, 3, 2],
    "one word": [1, 1],
    "one sentence": [6],
    "empty sentences": [0, 4, 0],
    "nothing but padding": [0, 0],
    "no sentence": [],
}


def random_task(lengths: list[int], tags: int, size: float = 3.0) -> list[Tensor]:
    """Scores, mask, moves, start, end."""
    generator = torch.Generator().manual_seed(0)
    words = max([*lengths, 1])
    mask = torch.arange(words) < torch.tensor(lengths, dtype=torch.long)[:, None]
    shapes = ((len(lengths), words, tags), (tags, tags), (tags,), (tags,))
    scores, *moves = (size * torch.randn(shape, generator=generator) for shape in shapes)
    return [each.to(DEVICE) for each in (scores * mask.unsqueeze(2), mask, *moves)]


def check(task: list[Tensor]) -> None:
    from polyseme.nn.crf_triton import sums

    for one, other in zip(sums(*task), plain_sums(*task), strict=True):
        assert one.is_contiguous()
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-5)


MORE = [pytest.param(tags, marks=pytest.mark.slow) for tags in (2, 17, 33)]  # the same kernel, with other padding


@pytest.mark.parametrize("tags", [1, 5, *MORE])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS.keys())
def test_sums(lengths: list[int], tags: int) -> None:
    check(random_task(lengths, tags))


def test_wider_than_the_longest() -> None:
    scores, mask, *moves = random_task([2, 5, 8], 5)
    scores[:, 5:], mask[:, 5:] = 0.0, False
    check([scores, mask, *moves])


@pytest.mark.parametrize("tags", [100, 128])
def test_many_tags(tags: int) -> None:
    check(random_task([3, 2], tags))


@pytest.mark.parametrize("tags", [5, *MORE])
def test_forbidden_moves(tags: int) -> None:
    """Some of them, all to a tag, all from a tag, and all."""
    task = random_task([6, 0, 3, 1], tags)
    _, _, moves, start, end = task
    moves[torch.rand(moves.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE) < 0.3] = FORBIDDEN
    moves[:, 0] = moves[-1] = start[-1] = end[0] = FORBIDDEN
    check(task)
    moves.fill_(FORBIDDEN)
    check(task)


def test_high_scores() -> None:
    check(random_task([6, 4], 5, size=1000.0))


def test_any_strides() -> None:
    scores, mask, moves, start, end = random_task([4, 2, 3], 5)
    wide = torch.stack([mask, ~mask], dim=2)
    check([scores.transpose(0, 1).contiguous().transpose(0, 1), wide[..., 0], moves.T.contiguous().T, start, end])


@pytest.mark.parametrize("tags", [5, *MORE])
def test_loss_and_marginals(tags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    allowed = (torch.rand(tags, tags) < 0.7) | torch.eye(tags, dtype=torch.bool)
    crf = Crf(tags, allowed=allowed).to(DEVICE)
    scores, mask, *_ = random_task(LENGTHS["ragged"] + [0], tags)
    targets = torch.randint(tags, (len(scores), 1), device=DEVICE).expand(mask.shape)  # one tag to the end: allowed
    weights = torch.randn(len(scores), device=DEVICE)
    parts = [scores.requires_grad_(), *crf.parameters()]
    found = []
    for fused in (False, True):
        monkeypatch.setattr(module, "fused_fits", lambda *_, fused=fused: fused)
        losses = crf.loss(scores, targets, mask)
        grads = torch.autograd.grad((losses * weights).sum(), parts)
        with torch.no_grad():
            found.append([losses.detach(), crf.marginals(scores, mask), *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_where_it_runs() -> None:
    """On a GPU alone, in float32, of few tags, and never where a gradient would be lost."""
    scores, _, *moves = random_task([3, 2], 5)
    assert fused_fits(scores, *moves) == (DEVICE == "cuda")
    assert not fused_fits(scores.double(), *moves)
    assert not fused_fits(torch.zeros(1, 2, 129, device=DEVICE), *moves)
    moves[0].requires_grad_()
    assert not fused_fits(scores, *moves)
    with torch.no_grad():
        assert fused_fits(scores, *moves) == (DEVICE == "cuda")


def test_gradients_of_marginals() -> None:
    """They go through the steps one by one, on a GPU too."""
    crf = Crf(3).to(DEVICE)
    scores, mask, *_ = random_task([3, 1], 3)
    probability = crf.marginals(scores.requires_grad_(), mask)[0, 0, 1]
    (grad,) = torch.autograd.grad(probability, [scores])
    near = scores.detach().double()
    near[0, 2, 0] += 1e-6
    with torch.no_grad():
        crf.double()
        change = crf.marginals(near, mask)[0, 0, 1] - crf.marginals(scores.double(), mask)[0, 0, 1]
    assert grad[0, 2, 0].item() == pytest.approx(change.item() / 1e-6, abs=1e-4)
