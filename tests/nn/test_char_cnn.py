"""The character network: both ways through the convolutions, the lossless cut, and the highways."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.nn import char_cnn
from polyseme.nn.char_cnn import CharCnn, Highway
from polyseme.nn.config import CharactersConfig

FILTERS = ((1, 3), (2, 4), (5, 6))


def words(lengths: list[int], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Words of these lengths in random characters, padded with symbol 261."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.full((len(lengths), width), 261)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(1, 260, (length,), generator=generator)
    return ids, torch.tensor(lengths)


def independent(network: CharCnn, ids: torch.Tensor) -> np.ndarray:
    """Place by place in float64 NumPy, over the whole padded word."""
    table = network.embedding.detach().double().numpy()
    rows = []
    for word in ids.numpy():
        x = table[word]
        found = []
        for filters in network.filters:
            weight, bias = filters.weight.detach().double().numpy(), filters.bias.detach().double().numpy()
            width = weight.shape[2]
            places = [np.einsum("fdw,wd->f", weight, x[i : i + width]) for i in range(len(x) - width + 1)]
            found.append(np.max(places, axis=0) + bias)
        y = np.concatenate(found)
        y = np.maximum(y, 0) if network.config.activation == "relu" else np.tanh(y)
        for highway in network.highways:
            weight, bias = highway.weight.detach().double().numpy(), highway.bias.detach().double().numpy()
            candidate, gate = np.split(weight @ y + bias, 2)
            gate = 1 / (1 + np.exp(-gate))
            y = gate * np.maximum(candidate, 0) + (1 - gate) * y
        rows.append(y)
    return np.stack(rows)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("highways", [0, 2])
@pytest.mark.parametrize("width", [8, 50], ids=["no room for padding", "cut"])
def test_network(activation: str, highways: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(char_cnn, "BLOCK_CPU", 3)
    torch.manual_seed(0)
    config = CharactersConfig(dim=4, filters=FILTERS, highway_layers=highways, activation=activation, max_length=width)
    network = CharCnn(config)
    for filters in network.filters:
        torch.nn.init.normal_(filters.bias)
    ids, lengths = words([3, 8, 4, 3, 7, 5, 6], width)
    np.testing.assert_allclose(network(ids, lengths).detach().numpy(), independent(network, ids), atol=1e-6)


def test_padding_counts_in_the_maximum() -> None:
    """A word whose own characters all score low takes the score of its padding; cutting it all away would be wrong."""
    network = CharCnn(CharactersConfig(dim=1, filters=((2, 1),), highway_layers=0))
    with torch.no_grad():
        network.embedding.fill_(-1.0)
        network.embedding[261] = 5.0
        network.filters[0].weight.fill_(1.0)
    ids, lengths = words([4], 50)
    assert network(ids, lengths).item() == pytest.approx(10.0)


def test_gradients_reach_everything() -> None:
    network = CharCnn(CharactersConfig(dim=4, filters=FILTERS, highway_layers=1, activation="tanh"))
    network(*words([3, 9], 50)).sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in network.parameters())


def test_highway_carries_at_first() -> None:
    highway = Highway(6)
    with torch.no_grad():
        highway.bias[6:] = -50.0
    x = torch.randn(3, 6)
    torch.testing.assert_close(highway(x), x)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"filters": ()}, "filters is"),
        ({"filters": ((1, 0),)}, "both 1 or more"),
        ({"filters": ((9, 2),), "max_length": 8}, "max_characters is 8; the widest filter needs 9 or more"),
        ({"symbols": 261}, "the utf8 alphabet has 262"),
        ({"highway_layers": -1}, "highway_layers is -1; allowed: 0 or more"),
    ],
)
def test_bad_configs(bad: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        CharactersConfig(**bad)
