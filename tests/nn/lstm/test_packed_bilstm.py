"""The layer with backpropagation written out against PyTorch's own, in double precision."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from polyseme.nn.lstm.packed_bilstm import packed_bilstm
from polyseme.nn.packing import Packing


def layer(seed: int = 0) -> nn.LSTM:
    torch.manual_seed(seed)
    return nn.LSTM(5, 7, bidirectional=True, batch_first=True).double()


def as_pytorch(lstm: nn.LSTM, inputs: Tensor, packing: Packing) -> Tensor:
    states: Tensor = lstm(PackedSequence(inputs, torch.tensor(packing.sizes)))[0].data
    return states


def gradients(lstm: nn.LSTM) -> list[Tensor]:
    found = [weight.grad.clone() for weight in lstm.parameters() if weight.grad is not None]
    lstm.zero_grad()
    return found


@pytest.mark.parametrize("lengths", [[3, 5, 1], [4], [1], [1, 1, 1], [2, 2], [6, 1, 1, 4, 3, 6]])
@pytest.mark.parametrize("frozen", [False, True])
def test_states_and_gradients_are_pytorchs(lengths: list[int], frozen: bool) -> None:
    lstm, packing = layer(), Packing(torch.tensor(lengths))
    inputs = torch.randn(sum(lengths), 5, dtype=torch.float64, requires_grad=not frozen)
    weight = torch.randn(sum(lengths), 14, dtype=torch.float64)
    expected = as_pytorch(lstm, inputs, packing)
    (expected * weight).sum().backward()
    wanted, of_inputs = gradients(lstm), None if frozen else inputs.grad
    inputs.grad = None
    found = packed_bilstm(lstm, inputs, packing.sizes, packing.reversed_order())
    torch.testing.assert_close(found, expected)
    (found * weight).sum().backward(retain_graph=True)
    assert len(wanted) == 8
    for one, other in zip(gradients(lstm), wanted, strict=True):
        torch.testing.assert_close(one, other)
    if of_inputs is not None and inputs.grad is not None:
        torch.testing.assert_close(inputs.grad, of_inputs)
    assert (inputs.grad is None) is frozen
    (found * weight).sum().backward()  # a second pass over the same graph
    for one, other in zip(gradients(lstm), wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_of_a_part_of_the_states() -> None:
    lstm, packing = layer(), Packing(torch.tensor([3, 2]))
    inputs = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    order = packing.reversed_order()
    assert torch.autograd.gradcheck(lambda given: packed_bilstm(lstm, given, packing.sizes, order)[1:3, 4:9], (inputs,))
