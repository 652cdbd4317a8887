"""The two Transformers against an independent computation, causality, company, gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.nn.config import TransformerConfig
from polyseme.nn.packing import Packing
from polyseme.nn.transformer import BiTransformer, TransformerBlock

DIM = 8
CONFIGS = {
    "usual": TransformerConfig(layers=3, heads=2, feedforward_size=12),
    "one layer": TransformerConfig(layers=1, heads=2, feedforward_size=32),
    "one head": TransformerConfig(layers=2, heads=1, feedforward_size=8),
    "pairs": TransformerConfig(layers=2, heads=4, feedforward_size=8),
}
LENGTHS = torch.tensor([3, 1, 7, 7, 2])
Task = tuple[Tensor, Tensor, list[int]]


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def trunk(request: pytest.FixtureRequest) -> BiTransformer:
    return built(request.param)


def built(config: TransformerConfig) -> BiTransformer:
    """A trunk whose biases and norms are not at rest, so that each of them is seen."""
    torch.manual_seed(1)
    trunk = BiTransformer(DIM, config).eval()
    for parameter in trunk.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, mean=0.5)
    return trunk


def task(lengths: Tensor = LENGTHS, distinct: int = 9) -> Task:
    """Vectors of random words, their packed index and the sizes of the steps."""
    generator = torch.Generator().manual_seed(2)
    index = torch.randint(distinct, (2, int(lengths.sum())), generator=generator)
    return torch.randn(distinct, DIM, generator=generator), index, Packing(lengths).sizes


def run(trunk: BiTransformer, given: Task) -> Tensor:
    outputs, _ = trunk(*given, trunk.zero_state(given[2][0]))
    return outputs


def places(sizes: list[int], row: int) -> list[int]:
    """The packed places of a sorted row's words."""
    starts = np.cumsum([0, *sizes[:-1]])
    return [int(start) + row for start, size in zip(starts, sizes, strict=True) if row < size]


def norm(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    normed = (x - x.mean()) / math.sqrt(x.var() + 1e-5)
    return normed * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    return weights[f"{name}.weight"] @ x + weights[f"{name}.bias"]


def turned(x: np.ndarray, position: int) -> np.ndarray:
    """Each pair of a head as a complex number, turned."""
    half = len(x) // 2
    angles = np.array([position / 10_000 ** (i / half) for i in range(half)])
    pairs = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag])


def block(xs: list[np.ndarray], layer: TransformerBlock, heads: int, top: bool) -> list[np.ndarray]:
    """Word by word, head by head, in float64."""
    weights = {name: value.double().detach().numpy() for name, value in layer.named_parameters()}
    parts = [np.split(linear(norm(x, weights, "attention_norm"), weights, "attention_in"), 3) for x in xs]
    results = []
    for t, x in enumerate(xs):
        found = []
        for head in range(heads):
            mine = slice(head * DIM // heads, (head + 1) * DIM // heads)
            query = turned(parts[t][0][mine], t)
            scores = [query @ turned(parts[s][1][mine], s) / math.sqrt(DIM / heads) for s in range(t + 1)]
            shares = np.exp(scores) / np.exp(scores).sum()
            found.append(sum(share * parts[s][2][mine] for s, share in enumerate(shares)))
        y = x + linear(np.concatenate(found), weights, "attention_out")
        inner = linear(norm(y, weights, "inner_norm"), weights, "inner_in")
        inner = np.array([z * (1 + math.erf(z / math.sqrt(2))) / 2 for z in inner])
        y = y + linear(inner, weights, "inner_out")
        results.append(norm(y, weights, "top_norm") if top else y)
    return results


def test_against_an_independent_computation(trunk: BiTransformer) -> None:
    distinct, index, sizes = task()
    found = run(trunk, (distinct, index, sizes)).detach().numpy()
    assert found.shape == (trunk.config.layers, 2, int(LENGTHS.sum()), DIM)
    for d, layers in enumerate(trunk.stacks()):
        for row in range(sizes[0]):
            own = places(sizes, row)
            xs = [distinct[index[d, place]].double().numpy() for place in own]
            for level, layer in enumerate(layers):
                xs = block(xs, layer, trunk.config.heads, level == len(layers) - 1)
                np.testing.assert_allclose(found[level, d, own], xs, atol=2e-5)


def test_a_later_word_never_changes_an_earlier_one(trunk: BiTransformer) -> None:
    distinct, index, sizes = task()
    before = run(trunk, (distinct, index, sizes))
    own = places(sizes, 0)
    for step, place in enumerate(own):
        changed = index.clone()
        changed[:, place] = (changed[:, place] + 1) % len(distinct)
        change = (run(trunk, (distinct, changed, sizes)) - before).abs().amax(dim=(0, 3))  # (2, words)
        assert (change[:, own[step:]] > 1e-5).all()
        others = [other for other in range(index.shape[1]) if other not in own[step:]]
        assert not change[:, others].any()


def test_company_and_padding_do_not_matter(trunk: BiTransformer) -> None:
    distinct, index, sizes = task()
    together = run(trunk, (distinct, index, sizes))
    for row in range(sizes[0]):
        own = places(sizes, row)
        alone = run(trunk, (distinct, index[:, own], [1] * len(own)))
        torch.testing.assert_close(alone, together[:, :, own], atol=2e-6, rtol=0)


def test_order_matters() -> None:
    trunk = built(CONFIGS["usual"])
    distinct, _, _ = task()
    one, other = (run(trunk, (distinct, torch.tensor([row, row]), [1] * 4)) for row in ([1, 2, 3, 4], [2, 1, 3, 4]))
    assert (one[-1, :, -1] - other[-1, :, -1]).abs().max() > 1e-3


def test_gradients_and_dropout(trunk: BiTransformer) -> None:
    given = task()
    given[0].requires_grad_()
    run(trunk, given).square().sum().backward()
    assert given[0].grad is not None and bool(torch.isfinite(given[0].grad).all())
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in trunk.parameters())
    still = run(trunk, given)
    trunk.dropout = 0.5
    torch.testing.assert_close(run(trunk, given), still)
    trunk.train()
    assert (run(trunk, given) - still).abs().max() > 1e-2


def test_double_numbers() -> None:
    trunk = built(CONFIGS["usual"])
    distinct, index, sizes = task()
    expected = run(trunk, (distinct, index, sizes))
    found = run(trunk.double(), (distinct.double(), index, sizes))
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), expected, atol=1e-5, rtol=0)


def test_the_state_holds_nothing() -> None:
    trunk = built(CONFIGS["usual"])
    state = trunk.zero_state(4)
    assert state.hidden.shape == state.cell.shape == (2, 3, 4, 0)
    assert state.rows(torch.tensor([2, 0])).cell.shape[2] == 2 and trunk.zero_state(1).expand(7).cell.shape[2] == 7


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"layers": 0}, "layers is 0; allowed: 1 or more"),
        ({"heads": 0}, "heads is 0; allowed: 1 or more"),
        ({"feedforward_size": -1}, "feedforward_size is -1; allowed: 1 or more"),
        ({"heads": 3}, "dim is 8; with 3 heads it must be a multiple of 6"),
        ({"heads": 8}, "dim is 8; with 8 heads it must be a multiple of 16"),
    ],
)
def test_bad_configs(bad: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        BiTransformer(DIM, TransformerConfig(**bad))
