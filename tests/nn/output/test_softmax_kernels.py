"""The softmax kernels against plain formulas, through Triton's interpreter where there is no GPU."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from polyseme.nn.output.inplace_softmax import plain_softmax_

triton = pytest.importorskip("triton")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("words", [1, 7, 5000])
def test_exponentials(words: int, own: bool) -> None:
    from polyseme.nn.output.inplace_softmax_triton import softmax_

    torch.manual_seed(0)
    scores = 10 * torch.randn(6, words, device=DEVICE)
    scores[1, 0] = -torch.inf
    mine = torch.randn(6, device=DEVICE) if own else None
    if words == 1 and not own:
        scores[1, 0] = 0.0  # a row must have something finite
    expected, other = scores.clone(), scores.clone()
    top = plain_softmax_(expected, mine)
    torch.testing.assert_close(softmax_(other, mine), top, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(other, expected, rtol=1e-4, atol=1e-7)
    total = expected.sum(1) + (torch.exp(mine - top) if mine is not None else 0.0)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("count", "dim", "words"), [(7, 16, 33), (130, 24, 200), (64, 128, 65)])
def test_flash_loss(count: int, dim: int, words: int) -> None:
    """Losses and gradients of a full softmax, each prediction with a weight of its own."""
    from polyseme.nn.output.softmax_triton import FlashLoss

    torch.manual_seed(1)
    states, weight = torch.randn(count, dim, device=DEVICE), torch.randn(words, dim, device=DEVICE) / dim**0.5
    bias, targets = torch.randn(words, device=DEVICE), torch.randint(words, (count,), device=DEVICE)
    scale = torch.randn(count, device=DEVICE)
    parts = [part.requires_grad_() for part in (states, weight, bias)]
    found, expected = FlashLoss.apply(*parts, targets), F.cross_entropy(states @ weight.T + bias, targets, reduction="none")
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    grads = [torch.autograd.grad((each * scale).sum(), parts) for each in (found, expected)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(("dim", "words"), [(128, 5000), (512, 3000)])
def test_losses_in_bf16(dim: int, words: int) -> None:
    """Both fused ways of the full loss, and the sampled one, are near the plain one in fp32."""
    from polyseme.nn.output.full import FullSoftmax
    from polyseme.nn.output.sampled import SampledSoftmax

    torch.manual_seed(2)
    layer = FullSoftmax(words, dim).cuda()
    states, targets = torch.randn(999, dim, device="cuda"), torch.randint(words, (999,), device="cuda")
    plain = F.cross_entropy(F.linear(states, layer.weight, layer.bias), targets, reduction="sum")
    expected = torch.autograd.grad(plain, [layer.weight, layer.bias])
    few = states.bfloat16().requires_grad_()
    total, each = layer.loss(few, targets)
    assert total.item() == pytest.approx(plain.item(), rel=2e-3) == pytest.approx(each.sum().item(), rel=2e-3)
    for one, other in zip(torch.autograd.grad(total, [layer.weight, layer.bias]), expected, strict=True):
        assert F.cosine_similarity(one.flatten(), other.flatten(), dim=0).item() > 0.999
    losses = []
    for x in (few, states):
        torch.manual_seed(5)
        losses.append(SampledSoftmax(layer, 500).loss(x, targets)[0].item())
    assert losses[0] == pytest.approx(losses[1], rel=2e-3)
