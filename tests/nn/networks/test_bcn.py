"""The biattentive classification network against its equations, one text at a time and without masks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.networks.bcn import Bcn

LENGTHS = torch.tensor([3, 5, 1, 0])
MASK = torch.arange(5) < LENGTHS[:, None]


def words(dim: int = 4) -> Tensor:
    """(4, 5, dim), with 99 on padding."""
    return torch.randn(4, 5, dim, generator=torch.Generator().manual_seed(1)).masked_fill(~MASK.unsqueeze(2), 99.0)


def network(**options: object) -> Bcn:
    """A small one whose batch norm has seen something."""
    torch.manual_seed(0)
    bcn = Bcn(4, 3, hidden_size=6, **options)  # type: ignore[arg-type]
    extra = words(bcn.output_inputs) if bcn.output_inputs else None
    bcn(words(), MASK, at_output=extra)
    return bcn


def plain(bcn: Bcn, text: Tensor, at_output: Tensor | None) -> Tensor:
    """One text (words, inputs), from the paper's equations."""
    x = bcn.encoder.layers[0](bcn.before(text)[None])[0][0]  # (words, 2 hidden)
    seen = torch.softmax(x @ x.T, dim=1) @ x
    x = bcn.integrator.layers[0](torch.cat([x, x - seen, x * seen], dim=1)[None])[0][0]
    x = x if at_output is None else torch.cat([x, at_output], dim=1)
    weights = torch.softmax(x @ bcn.attentive.score.weight[0], dim=0)
    return bcn.classifier(torch.cat([x.max(0).values, x.mean(0), x.min(0).values, weights @ x])[None])[0]


@pytest.mark.parametrize("output_inputs", [0, 2])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_as_the_paper_says(output_inputs: int, batch_norm: bool) -> None:
    bcn = network(output_inputs=output_inputs, batch_norm=batch_norm).eval()
    extra = words(output_inputs) if output_inputs else None
    found = bcn(words(), MASK, LENGTHS, extra)
    assert found.shape == (4, 3) and bool(torch.isfinite(found).all())
    for row, length in enumerate(LENGTHS.tolist()):
        beside = None if extra is None else extra[row : row + 1, :length]
        alone = bcn(words()[row : row + 1, :length], MASK[row : row + 1, :length], at_output=beside)
        torch.testing.assert_close(alone[0], found[row], atol=1e-6, rtol=0.0)
        if length:
            expected = plain(bcn, words()[row, :length], None if beside is None else beside[0])
            torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


def test_the_output_position_counts() -> None:
    bcn = network(output_inputs=2).eval()
    found = [bcn(words(), MASK, at_output=extra) for extra in (words(2), -words(2))]
    assert not torch.allclose(*(scores[:3] for scores in found))
    torch.testing.assert_close(found[0][3], found[1][3])  # a text without words has none there either


def test_sizes_of_the_paper() -> None:
    bcn = Bcn(10, 5)
    assert [bcn.classifier[place].maps.weight.shape for place in (1, 2)] == [(4 * 1200, 2400), (4 * 600, 1200)]


def test_without_batch_norm_training_does_not_depend_on_the_rest_of_the_batch() -> None:
    bcn = network(dropout=0.0, batch_norm=False).train()
    torch.testing.assert_close(bcn(words()[:2], MASK[:2]), bcn(words(), MASK)[:2], atol=1e-6, rtol=0.0)
    normed = network(dropout=0.0).train()
    assert not torch.allclose(normed(words()[:2], MASK[:2]), normed(words(), MASK)[:2], atol=1e-2)


def test_gradients_reach_everything_but_padding() -> None:
    bcn = network(output_inputs=2)
    bcn.zero_grad()
    vectors, extra = words().requires_grad_(), words(2).requires_grad_()
    torch.nn.functional.cross_entropy(bcn(vectors, MASK, LENGTHS, extra), torch.tensor([0, 1, 2, 0])).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in bcn.parameters())
    for given in (vectors, extra):
        assert given.grad is not None and bool(torch.isfinite(given.grad).all())
        assert bool(given.grad[MASK].any()) and not given.grad[~MASK].any()


def test_few_bits() -> None:
    bcn = network(output_inputs=2).eval()
    whole = bcn(words(), MASK, at_output=words(2))
    with torch.autocast("cpu", torch.bfloat16):
        few = bcn(words(), MASK, at_output=words(2))
        torch.nn.functional.cross_entropy(few, torch.tensor([0, 1, 2, 0])).backward()
    torch.testing.assert_close(few.float(), whole, atol=0.05, rtol=0.05)


def test_learns_whether_a_word_comes_twice() -> None:
    torch.manual_seed(0)
    bcn = Bcn(6, 2, hidden_size=16, dropout=0.0)
    rows = torch.stack([torch.randperm(6)[:4] for _ in range(32)])
    rows[::2, 3] = rows[::2, 0]
    vectors, wanted = torch.eye(6)[rows], torch.arange(32) % 2
    mask = torch.ones(32, 4, dtype=torch.bool)
    optimizer = torch.optim.Adam(bcn.parameters(), lr=0.003)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(bcn(vectors, mask), wanted).backward()
        optimizer.step()
    assert (bcn.eval()(vectors, mask).argmax(1) == wanted).float().mean() > 0.95


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="takes output vectors of size 2; got 0"):
        Bcn(4, 3, hidden_size=6, output_inputs=2)(words(), MASK)
    with pytest.raises(UsageError, match="takes output vectors of size 0; got 2"):
        Bcn(4, 3, hidden_size=6)(words(), MASK, at_output=words(2))
