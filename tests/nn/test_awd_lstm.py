"""The AWD-LSTM: a step against NumPy, the fused layer against the plain one, and what is dropped."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from polyseme.base.config import ConfigError
from polyseme.nn.awd_lstm import AwdLstm, AwdLstmOutput, WeightDropLstm, activation_loss, drop_words
from polyseme.nn.config import AwdDropout


def state(layer: WeightDropLstm, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, layer.units), torch.randn(rows, layer.units)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def test_one_step_by_numpy() -> None:
    """h' = o tanh(c'), c' = f c + i g, each gate by its own matrices, with a dropped matrix from state to gate."""
    torch.manual_seed(0)
    layer = WeightDropLstm(3, 4, rate=0.5)
    nn.init.normal_(layer.bias)
    layer.dropped = lambda: dropped  # type: ignore[method-assign]
    mask = (np.arange(64).reshape(16, 4) % 3 > 0) * 2.0
    dropped = layer.recurrent_weight * torch.from_numpy(mask).float()
    x, (h, c) = torch.randn(2, 1, 3), state(layer, 2)
    found, (hidden, cell) = layer(x, (h, c))
    w, u, b = (value.detach().double().numpy() for value in (layer.input_weight, layer.recurrent_weight, layer.bias))
    for row in range(2):
        gates = [
            w[4 * k : 4 * k + 4] @ x[row, 0].double().numpy()
            + (u * mask)[4 * k : 4 * k + 4] @ h[row].double().numpy()
            + b[4 * k : 4 * k + 4]
            for k in range(4)
        ]
        new = sigmoid(gates[1]) * c[row].double().numpy() + sigmoid(gates[0]) * np.tanh(gates[2])
        np.testing.assert_allclose(cell[row].detach(), new, atol=1e-6)
        np.testing.assert_allclose(hidden[row].detach(), sigmoid(gates[3]) * np.tanh(new), atol=1e-6)
    assert torch.equal(found[:, 0], hidden)


@pytest.mark.parametrize("training", [False, True])
def test_fused_and_plain_agree_with_gradients(training: bool) -> None:
    torch.manual_seed(1)
    layer = WeightDropLstm(5, 6, rate=0.4).train(training)
    vectors, start = torch.randn(3, 7, 5), state(layer, 3)
    results = []
    for fused in (True, False):
        torch.manual_seed(2)
        layer.zero_grad()
        mine = vectors.clone().requires_grad_()
        out, end = layer(mine, start) if fused else layer.plain(mine, start, layer.dropped())
        (out.square().sum() + end[1].sum()).backward()
        results.append([out, *end, mine.grad, *(weight.grad.clone() for weight in layer.parameters())])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("kind", "within"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_more_units_of_zeros_change_nothing(kind: torch.dtype, within: float) -> None:
    """As on a GPU: six units and five inputs computed as eight each, in half precision too."""
    torch.manual_seed(4)
    layer = WeightDropLstm(5, 6)
    nn.init.normal_(layer.bias)
    vectors, start = torch.randn(3, 7, 5), state(layer, 3)
    results = []
    for padded in (True, False):
        layer.zero_grad()
        mine = vectors.clone().requires_grad_()
        out, end = layer.fused(mine, start, kind, multiple=8) if padded else layer.plain(mine, start, layer.dropped())
        (out.square().mean() + end[1].mean()).backward()
        results.append([out, *end, mine.grad, *(weight.grad.clone() for weight in layer.parameters())])
    for one, other in zip(*results, strict=True):
        assert one.shape == other.shape
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, other, atol=within, rtol=within)


def test_weights_are_dropped_for_all_steps_and_only_in_training() -> None:
    torch.manual_seed(3)
    layer = WeightDropLstm(2, 50, rate=0.5)
    share = (layer.dropped() == 0).float().mean().item()
    assert 0.45 < share < 0.55
    kept = layer.dropped()
    assert torch.allclose(kept[kept != 0], 2 * layer.recurrent_weight[kept != 0])
    layer.eval()
    assert torch.equal(layer.dropped(), layer.recurrent_weight)
    gradient = torch.autograd.grad(layer.train().dropped().sum(), layer.recurrent_weight)[0]
    assert set(gradient.unique().tolist()) == {0.0, 2.0}  # none for what was dropped


def test_weights_are_contiguous_in_cudnns_order() -> None:
    """Where cuDNN looks for them: matrices, then biases, without gaps. So it neither copies them nor warns."""
    layer = WeightDropLstm(3, 4, rate=0.5)
    weights = layer._contiguous(layer.dropped(), units=0, inputs=0)
    assert [tuple(weight.shape) for weight in weights] == [(16, 3), (16, 4), (16,), (16,)]
    place = weights[0].data_ptr()
    for weight in weights:
        assert weight.is_contiguous() and weight.data_ptr() == place
        place += weight.nbytes
    assert weights[0].storage_offset() == 0 and weights[0].untyped_storage().nbytes() == sum(w.nbytes for w in weights)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cudnn_does_not_warn() -> None:
    lstm = AwdLstm(dim=8, hidden_size=12, layers=3).cuda()
    lstm.set_dropout(AwdDropout())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reading = lstm(torch.randn(4, 9, 8, device="cuda"), lstm.zero_state(4))
        reading.top.sum().backward()
    layer = lstm.stack()[0].eval()
    vectors, start = torch.randn(3, 7, 8, device="cuda"), (torch.randn(3, 12).cuda(), torch.randn(3, 12).cuda())
    torch.testing.assert_close(
        layer(vectors, start)[0], layer.plain(vectors, start, layer.recurrent_weight)[0], atol=2e-3, rtol=0
    )
    with torch.autocast("cuda", dtype=torch.bfloat16):
        half = layer(vectors, start)[0]
    torch.testing.assert_close(half, layer.plain(vectors, start, layer.recurrent_weight)[0], atol=3e-2, rtol=0)


def test_layers_and_their_dropout() -> None:
    torch.manual_seed(4)
    lstm = AwdLstm(dim=40, hidden_size=60, layers=2)
    vectors = torch.randn(2, 5, 40)
    plain = lstm.eval()(vectors, lstm.zero_state(2))
    assert [tuple(each.shape) for each in plain.layers] == [(2, 5, 60), (2, 5, 40)]
    assert torch.equal(plain.top, plain.layers[-1])
    one, two = lstm(vectors[:, :2], lstm.zero_state(2)), None
    two = lstm(vectors[:, 2:], one.end)
    torch.testing.assert_close(torch.cat([one.top, two.top], dim=1), plain.top)  # the state says all
    lstm.set_dropout(AwdDropout(output=0.5, input=0, hidden=0, weight=0))
    lstm.train()
    reading = lstm(vectors, lstm.zero_state(2))
    zero = reading.top == 0
    assert zero.all(1).equal(zero.any(1)) and 0.2 < zero.float().mean().item() < 0.8  # the same places of all words
    torch.testing.assert_close(reading.layers[-1], plain.top)


def test_words_are_dropped_wherever_they_stand() -> None:
    torch.manual_seed(5)
    table = nn.Embedding(30, 4)
    rows = torch.arange(30).repeat(2).view(2, 30)
    found = drop_words(table, rows, 0.5, True)
    gone = (found == 0).all(-1)
    assert torch.equal(gone[0], gone[1]) and 5 <= int(gone[0].sum()) <= 25
    torch.testing.assert_close(found[0][~gone[0]], 2 * table.weight[~gone[0]])
    assert torch.equal(drop_words(table, rows, 0.5, False), table(rows))


def test_activation_loss_by_hand() -> None:
    raw = torch.tensor([[[1.0, 2.0], [3.0, 2.0]]])
    reading = AwdLstmOutput([raw], torch.tensor([[[2.0, 0.0], [6.0, 0.0]]]), [])
    assert activation_loss(reading, size=2.0, change=3.0).item() == pytest.approx(2 * 40 / 4 + 3 * 4 / 2)
    short = AwdLstmOutput([raw[:, :1]], raw[:, :1], [])
    assert activation_loss(short, size=1.0, change=3.0).item() == pytest.approx(2.5)


def test_what_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"input_dropout is 1\.5; allowed: 0 or more, below 1; weight_dropout is -1"):
        AwdDropout(input=1.5, weight=-1)
    with pytest.raises(ConfigError, match=r"weight_dropout is 1\.0"):
        AwdDropout().times(2)
