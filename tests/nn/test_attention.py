"""Attention against loops over words in Python."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from polyseme.nn.attention import SelfAttentivePooling, align, attend, masked_softmax

MASK_A = torch.tensor([[True, True, True], [True, False, False], [True, True, False], [False, False, False]])
MASK_B = torch.tensor([[True, True], [True, True], [False, False], [True, False]])


def texts(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def looped(query: Tensor, key: Tensor, value: Tensor, query_mask: Tensor, key_mask: Tensor) -> Tensor:
    """Word by word."""
    found = torch.zeros(*query.shape[:2], value.shape[2])
    for row in range(len(query)):
        keys = [place for place in range(key.shape[1]) if key_mask[row, place]]
        for place in range(query.shape[1]):
            if query_mask[row, place] and keys:
                weights = [math.exp(float(query[row, place] @ key[row, other])) for other in keys]
                for weight, other in zip(weights, keys, strict=True):
                    found[row, place] += weight / sum(weights) * value[row, other]
    return found


def test_masked_softmax() -> None:
    scores = torch.tensor([[1.0, 2.0, 99.0], [4.0, 4.0, 4.0], [5.0, -5.0, 5.0]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False], [False, True, False]])
    found = masked_softmax(scores, mask)
    e = math.e
    torch.testing.assert_close(found, torch.tensor([[1 / (1 + e), e / (1 + e), 0.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    found.square().sum().backward()
    assert scores.grad is not None and bool(torch.isfinite(scores.grad).all())
    assert not scores.grad[~mask].any() and bool(scores.grad[0, :2].all())
    torch.testing.assert_close(masked_softmax(scores.T, mask.T, dim=0), found.T)
    low = torch.tensor([[-1e30, -1e30, 0.0]])
    torch.testing.assert_close(masked_softmax(low, mask[:1]), torch.tensor([[0.5, 0.5, 0.0]]))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_masked_softmax_keeps_the_type(kind: torch.dtype) -> None:
    found = masked_softmax(torch.tensor([[1000.0, 1000.0, 0.0]], dtype=kind), torch.tensor([[True, True, False]]))
    assert found.dtype == kind and found.tolist() == [[0.5, 0.5, 0.0]]


def test_attend() -> None:
    query, key, value = texts(4, 3, 5), texts(4, 2, 5, seed=1), texts(4, 2, 6, seed=2)
    found = attend(query, key, value, MASK_A, MASK_B)
    torch.testing.assert_close(found, looped(query, key, value, MASK_A, MASK_B))
    assert not found[2].any() and not found[3].any()


def test_align_is_attend_both_ways() -> None:
    a, b = texts(4, 3, 5).requires_grad_(), texts(4, 2, 5, seed=1).requires_grad_()
    for_a, for_b = align(a, b, MASK_A, MASK_B)
    torch.testing.assert_close(for_a, looped(a, b, b, MASK_A, MASK_B))
    torch.testing.assert_close(for_b, looped(b, a, a, MASK_B, MASK_A))
    (for_a.sum() + for_b.square().sum()).backward()
    for given, mask in ((a, MASK_A), (b, MASK_B)):
        assert given.grad is not None and bool(torch.isfinite(given.grad).all()) and not given.grad[~mask].any()


def test_padding_and_neighbours_change_nothing() -> None:
    a, b = texts(4, 3, 5), texts(4, 2, 5, seed=1)
    pooling = SelfAttentivePooling(5)
    together = align(a, b, MASK_A, MASK_B)
    filled = align(a.masked_fill(~MASK_A.unsqueeze(2), 99.0), b.masked_fill(~MASK_B.unsqueeze(2), 99.0), MASK_A, MASK_B)
    torch.testing.assert_close(filled, together)
    for row in range(4):
        m, n = int(MASK_A[row].sum()), int(MASK_B[row].sum())
        one = slice(row, row + 1)
        alone = align(a[one, :m], b[one, :n], MASK_A[one, :m], MASK_B[one, :n])
        torch.testing.assert_close(alone[0][0], together[0][row, :m], atol=1e-6, rtol=0.0)
        torch.testing.assert_close(alone[1][0], together[1][row, :n], atol=1e-6, rtol=0.0)
        found = pooling(a.masked_fill(~MASK_A.unsqueeze(2), 99.0), MASK_A)[row]
        torch.testing.assert_close(pooling(a[one, :m], MASK_A[one, :m])[0], found, atol=1e-6, rtol=0.0)


def test_pooling() -> None:
    pooling = SelfAttentivePooling(2)
    with torch.no_grad():
        pooling.score.weight.copy_(torch.tensor([[math.log(3.0), 0.0]]))
    vectors = torch.tensor([[[1.0, 8.0], [0.0, 4.0], [50.0, 99.0]], [[1.0, 1.0]] * 3])
    found = pooling(vectors, torch.tensor([[True, True, False], [False, False, False]]))
    torch.testing.assert_close(found, torch.tensor([[0.75, 7.0], [0.0, 0.0]]))
    found.sum().backward()
    assert pooling.score.weight.grad is not None and bool(pooling.score.weight.grad.any())
    assert pooling(vectors[:, :0], torch.zeros(2, 0, dtype=torch.bool)).tolist() == [[0.0, 0.0]] * 2


def test_pooling_learns_where_to_look() -> None:
    """The word with a 1 in its first place holds the number that is wanted in its second."""
    torch.manual_seed(0)
    pooling = SelfAttentivePooling(2)
    vectors = torch.cat([torch.eye(5)[torch.arange(20) % 5].unsqueeze(2), torch.randn(20, 5, 1)], dim=2)
    wanted = (vectors[..., 0] * vectors[..., 1]).sum(1)
    optimizer = torch.optim.Adam(pooling.parameters(), lr=0.3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = (pooling(vectors, torch.ones(20, 5, dtype=torch.bool))[:, 1] - wanted).square().mean()
        loss.backward()
        optimizer.step()
    assert loss < 0.01


def test_few_bits() -> None:
    a, b = texts(4, 3, 5), texts(4, 2, 5, seed=1)
    pooling = SelfAttentivePooling(5)
    with torch.autocast("cpu", torch.bfloat16):
        found = *align(a, b, MASK_A, MASK_B), pooling(a, MASK_A)
    for few, whole in zip(found, (*align(a, b, MASK_A, MASK_B), pooling(a, MASK_A)), strict=True):
        torch.testing.assert_close(few.float(), whole, atol=0.05, rtol=0.05)
