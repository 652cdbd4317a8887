"""The alternating highway LSTM against a plain loop over texts, alone and in batches."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.highway_lstm import HighwayLstm

LENGTHS = torch.tensor([3, 0, 5, 1])
MASK = torch.arange(5) < LENGTHS[:, None]


def words(dim: int = 4) -> Tensor:
    """(4, 5, dim), with 99 on padding."""
    return torch.randn(4, 5, dim, generator=torch.Generator().manual_seed(1)).masked_fill(~MASK.unsqueeze(2), 99.0)


def network(inputs: int = 4, hidden: int = 6, layers: int = 4, dropout: float = 0.0) -> HighwayLstm:
    torch.manual_seed(0)
    made = HighwayLstm(inputs, hidden, layers, dropout=dropout)
    with torch.no_grad():
        for layer in made.layers:
            layer.gate.bias.normal_()
    return made


def plain(made: HighwayLstm, text: Tensor) -> Tensor:
    """One text (words, inputs) -> (words, hidden), layer by layer."""
    for number, layer in enumerate(made.layers):
        weights = layer.state_dict()
        read = text.flip(0) if number % 2 else text
        states = layer.lstm(read)[0]
        states = states.flip(0) if number % 2 else states
        gate = torch.sigmoid(torch.cat([text, states], 1) @ weights["gate.weight"].T + weights["gate.bias"])
        passed = text @ weights["passed.weight"].T if "passed.weight" in weights else text
        text = gate * states + (1 - gate) * passed
    return text


@pytest.mark.parametrize(("inputs", "layers"), [(4, 1), (4, 2), (4, 5), (6, 3)])
def test_as_a_plain_loop(inputs: int, layers: int) -> None:
    made = network(inputs, layers=layers)
    found = made(words(inputs), MASK)
    assert found.shape == (4, 5, made.dim) and not found[~MASK].any()
    for row, length in enumerate(LENGTHS.tolist()):
        if length:
            torch.testing.assert_close(found[row, :length], plain(made, words(inputs)[row, :length]), atol=1e-6, rtol=0.0)
    torch.testing.assert_close(made(words(inputs), MASK, LENGTHS), found, atol=0.0, rtol=0.0)


def test_alone_as_in_a_batch() -> None:
    made = network()
    together = made(words(), MASK)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = made(words()[row : row + 1, :length], MASK[row : row + 1, :length])
        torch.testing.assert_close(alone[0], together[row, :length], atol=1e-6, rtol=0.0)


def test_layers_read_in_turn_from_both_ends() -> None:
    other = words()
    other[2, 4] += 1.0
    changed = [(network(layers=layers)(words(), MASK) != network(layers=layers)(other, MASK)).any(2)[2] for layers in (1, 2)]
    assert changed[0].tolist() == [False] * 4 + [True] and changed[1].tolist() == [True] * 5


def test_texts_without_words() -> None:
    made, empty = network(), torch.zeros(2, 3, dtype=torch.bool)
    assert made(torch.ones(2, 3, 4), empty).tolist() == torch.zeros(2, 3, 6).tolist()
    assert made(torch.ones(2, 0, 4), empty[:, :0]).shape == (2, 0, 6)
    assert made(torch.ones(0, 3, 4), empty[:0]).shape == (0, 3, 6)


def test_gradients_reach_everything_but_padding() -> None:
    made, vectors = network(dropout=0.1), words().requires_grad_()
    made(vectors, MASK, LENGTHS).square().sum().backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in made.parameters())
    assert vectors.grad is not None and bool(vectors.grad[MASK].any(1).all()) and not vectors.grad[~MASK].any()


def test_gradients_are_right() -> None:
    made = network(3, 3, 2).double()
    vectors = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    assert torch.autograd.gradcheck(lambda given: made(given, mask), (vectors,))


def test_many_layers_still_learn_the_first() -> None:
    """Through sixteen layers, the gradient at the first stays of the size of that at the last."""
    torch.manual_seed(0)
    made = HighwayLstm(8, 20, 16)
    made(torch.randn(4, 6, 8), torch.ones(4, 6, dtype=torch.bool)).square().sum().backward()
    first, last = (layer.lstm.weight_ih_l0.grad.norm() for layer in (made.layers[1], made.layers[-1]))  # type: ignore[union-attr]
    assert first > 0.02 * last


def test_first_values() -> None:
    for layer in HighwayLstm(4, 6, 2).layers:
        for gate in layer.lstm.weight_hh_l0.chunk(4):  # type: ignore[operator,union-attr]
            torch.testing.assert_close(gate @ gate.T, torch.eye(6))
        bias = layer.lstm.bias_ih_l0 + layer.lstm.bias_hh_l0  # type: ignore[operator,union-attr]
        assert bias.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12  # input, forget, cell and output gate
        assert layer.gate.bias.tolist() == [-2.0] * 6  # type: ignore[operator,union-attr]


def test_dropout_takes_the_same_places_of_all_words() -> None:
    made, full = network(30, 40, 1, dropout=0.5), torch.ones(4, 5, dtype=torch.bool)
    found = made(torch.randn(4, 5, 30), full) == 0
    assert torch.equal(found, found[:, :1].expand_as(found)) and 0.4 < found.float().mean() < 0.6
    assert not torch.equal(found[0], found[1])
    vectors = torch.randn(4, 5, 30)
    assert torch.equal(made.eval()(vectors, full), made(vectors, full))


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
def test_few_bits(given: torch.dtype) -> None:
    made = network()
    expected = made(words(), MASK)
    with torch.autocast("cpu", torch.bfloat16):
        found = made(words().to(given), MASK)
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.0)
    found.float().sum().backward()


def test_refusals() -> None:
    with pytest.raises(UsageError, match="layers is 0; allowed: 1 or more"):
        HighwayLstm(4, 6, 0)
    with pytest.raises(UsageError, match="0 or more, below 1"):
        HighwayLstm(4, 6, 1, dropout=1.0)
