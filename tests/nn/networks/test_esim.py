"""ESIM against its equations, one pair at a time and without masks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.networks.esim import Esim, Pair

LENGTHS = torch.tensor([3, 5, 1, 0, 2, 0]), torch.tensor([2, 4, 1, 3, 0, 0])
MASKS = torch.arange(5) < LENGTHS[0][:, None], torch.arange(4) < LENGTHS[1][:, None]


def words(dim: int = 4) -> Pair:
    """(6, 5, dim) and (6, 4, dim), with 99 on padding."""
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(*mask.shape, dim, generator=generator).masked_fill(~mask.unsqueeze(2), 99.0) for mask in MASKS)
    return first, second


def network(**options: object) -> Esim:
    torch.manual_seed(0)
    return Esim(4, 3, hidden_size=6, **options)  # type: ignore[arg-type]


def plain(esim: Esim, texts: list[Tensor], at_output: list[Tensor] | None) -> Tensor:
    """Two texts, each (words, inputs), from the paper's equations."""
    encoded = [esim.encoder.layers[0](text[None])[0][0] for text in texts]
    if at_output is not None:
        encoded = [torch.cat(both, dim=1) for both in zip(encoded, at_output, strict=True)]
    pooled = []
    for a, b in (encoded, encoded[::-1]):
        seen = torch.softmax(a @ b.T, dim=1) @ b
        local = esim.projection(torch.cat([a, seen, a - seen, a * seen], dim=1))
        x = esim.composition.layers[0](local[None])[0][0]
        pooled += [x.mean(0), x.max(0).values]
    return esim.classifier(torch.cat(pooled)[None])[0]


@pytest.mark.parametrize("output_inputs", [0, 2])
def test_as_the_paper_says(output_inputs: int) -> None:
    esim = network(output_inputs=output_inputs).eval()
    extra = words(output_inputs) if output_inputs else None
    found = esim(words(), MASKS, LENGTHS, extra)
    assert found.shape == (6, 3) and bool(torch.isfinite(found).all())
    torch.testing.assert_close(esim(words(), MASKS, at_output=extra), found, atol=0.0, rtol=0.0)
    for row, lengths in enumerate(zip(*(part.tolist() for part in LENGTHS), strict=True)):

        def cut(pair: Pair, row: int = row, lengths: tuple[int, int] = lengths) -> Pair:
            return pair[0][row : row + 1, : lengths[0]], pair[1][row : row + 1, : lengths[1]]

        alone = esim(cut(words()), cut(MASKS), at_output=None if extra is None else cut(extra))
        torch.testing.assert_close(alone[0], found[row], atol=1e-6, rtol=0.0)
        if all(lengths):
            beside = None if extra is None else [text[0] for text in cut(extra)]
            expected = plain(esim, [text[0] for text in cut(words())], beside)
            torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


def test_which_text_is_first_counts() -> None:
    esim = network().eval()
    (first, second), (mask, other) = words(), MASKS
    assert not torch.allclose(esim((first, second), (mask, other)), esim((second, first), (other, mask)))


def test_gradients_reach_everything_but_padding() -> None:
    esim = network(output_inputs=2)
    pairs = [words(), words(2)]
    for text in (text for pair in pairs for text in pair):
        text.requires_grad_()
    torch.nn.functional.cross_entropy(esim(pairs[0], MASKS, LENGTHS, pairs[1]), torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in esim.parameters())
    for pair in pairs:
        for text, mask in zip(pair, MASKS, strict=True):
            assert text.grad is not None and bool(torch.isfinite(text.grad).all())
            assert bool(text.grad[mask].any()) and not text.grad[~mask].any()


def test_few_bits() -> None:
    esim = network(output_inputs=2).eval()
    whole = esim(words(), MASKS, at_output=words(2))
    with torch.autocast("cpu", torch.bfloat16):
        few = esim(words(), MASKS, at_output=words(2))
        torch.nn.functional.cross_entropy(few, torch.tensor([0, 1, 2, 0, 1, 2])).backward()
    torch.testing.assert_close(few.float(), whole, atol=0.05, rtol=0.05)


def test_learns_whether_texts_share_their_words() -> None:
    torch.manual_seed(0)
    esim = Esim(8, 2, hidden_size=16, dropout=0.1)
    orders = torch.stack([torch.randperm(8) for _ in range(64)])
    first, wanted = orders[:, :3], torch.arange(64) % 2
    second = torch.where(wanted[:, None] == 1, first.flip(1), orders[:, 3:6])
    masks = (torch.ones(64, 3, dtype=torch.bool),) * 2
    vectors = torch.eye(8)[first], torch.eye(8)[second]
    optimizer = torch.optim.Adam(esim.parameters(), lr=0.02)
    for _ in range(25):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(esim(vectors, masks), wanted).backward()
        optimizer.step()
    assert (esim.eval()(vectors, masks).argmax(1) == wanted).float().mean() > 0.95


def test_mistakes() -> None:
    with pytest.raises(UsageError, match="takes output vectors of size 2; got 0"):
        network(output_inputs=2)(words(), MASKS)
    with pytest.raises(UsageError, match="takes output vectors of size 0; got 2"):
        network()(words(), MASKS, at_output=words(2))
