"""An AWD-LSTM through CUDA graphs has the losses and gradients of the plain one, with the same random numbers."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.nn.awd_lstm import AwdLstm, AwdLstmState
from polyseme.nn.awd_lstm_graph import OFTEN, GraphedAwdLstm
from polyseme.nn.config import AwdDropout
from polyseme.nn.cuda_graph import can_replay
from polyseme.nn.lstm.layers import plain_only

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
LENGTHS = [5, 7, 5, 3]


def network(device: str = "cpu", *, dropout: float = 1.0) -> AwdLstm:
    torch.manual_seed(2)
    lstm = AwdLstm(dim=8, hidden_size=16, layers=3).to(device, torch.float64)
    lstm.set_dropout(AwdDropout().times(dropout))
    return lstm


def train(lstm: AwdLstm, *, steps: int, accumulated: int = 1) -> tuple[list[float], AwdLstmState]:
    """Train on random vectors of changing lengths; return all losses and the last state."""
    optimizer = torch.optim.SGD(lstm.parameters(), lr=0.5)
    data = torch.Generator().manual_seed(5)
    graphed, state, losses = GraphedAwdLstm(lstm), lstm.zero_state(4), []
    torch.manual_seed(3)
    for step in range(steps):
        for part in range(accumulated):
            found, state = batch(graphed, state, LENGTHS[(step + part) % len(LENGTHS)], data)
            losses += found
        optimizer.step()
        optimizer.zero_grad()
    return losses, state


def batch(graphed: GraphedAwdLstm, state: AwdLstmState, length: int, data: torch.Generator) -> tuple[list[float], AwdLstmState]:
    """Add the gradients of one batch; a function of its own, since nothing of it may be left when a graph is captured."""
    vectors, wanted = (torch.randn(4, length, 8, generator=data).to(state[0][0]) for _ in range(2))
    output = graphed(vectors.requires_grad_(), state)
    loss = (output.top - wanted).square().mean() + 0.1 * output.layers[-1].square().mean()
    loss.backward()
    assert vectors.grad is not None
    return [loss.item(), float(vectors.grad.sum())], output.end


def test_as_the_network_itself() -> None:
    lstm = network(dropout=0.0)
    vectors = torch.randn(4, 5, 8).double()
    output, own = GraphedAwdLstm(lstm)(vectors, lstm.zero_state(4)), lstm(vectors, lstm.zero_state(4))
    assert torch.equal(output.top, own.top) and torch.equal(output.layers[-1], own.layers[-1])
    for pair, pair_of_its_own in zip(output.end, own.end, strict=True):
        assert all(torch.equal(a, b) and not a.requires_grad for a, b in zip(pair, pair_of_its_own, strict=True))


@needs_gpu
@pytest.mark.parametrize("accumulated", [1, 2])
def test_graphs_change_nothing(accumulated: int) -> None:
    """Over many steps, with three lengths, two of them in one step: graphs share memory, and gradients add up."""
    steps = 4 * OFTEN
    with plain_only():
        plain, plain_end = train(network("cuda"), steps=steps, accumulated=accumulated)
    graphed, end = train(network("cuda"), steps=steps, accumulated=accumulated)
    assert graphed == pytest.approx(plain, rel=1e-9, abs=1e-9)
    for ours, theirs in zip(end, plain_end, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@needs_gpu
def test_graphs_are_made_anew_when_weights_move_or_dropout_changes() -> None:
    lstm = network("cuda")
    graphed, vectors = GraphedAwdLstm(lstm), torch.randn(4, 5, 8, device="cuda").double()

    def graphs() -> int:
        for _ in range(OFTEN):
            graphed(vectors, lstm.zero_state(4)).top.sum().backward()
            lstm.zero_grad()
        return len(graphed._graphs)

    assert graphs() == 1
    lstm.set_dropout(AwdDropout().times(0.0))
    graphed(vectors, lstm.zero_state(4))
    assert len(graphed._graphs) == 0
    assert graphs() == 1
    top: Tensor = graphed(vectors, lstm.zero_state(4)).top
    with plain_only():
        torch.testing.assert_close(top, graphed(vectors, lstm.zero_state(4)).top)
    lstm.float().double()
    graphed(vectors, lstm.zero_state(4))
    assert len(graphed._graphs) == 0
    with torch.no_grad():
        graphed(vectors, lstm.zero_state(4))
    lstm.eval()
    assert torch.equal(graphed(vectors, lstm.zero_state(4)).top, lstm(vectors, lstm.zero_state(4)).top)


def test_only_the_first_batch_of_a_step_may_be_a_graphs() -> None:
    lstm = network()
    assert can_replay(lstm)
    lstm(torch.randn(4, 5, 8).double(), lstm.zero_state(4)).top.sum().backward()
    assert not can_replay(lstm)
    lstm.zero_grad()
    with torch.no_grad():
        assert not can_replay(lstm)
    assert can_replay(lstm) and not can_replay(lstm.eval()) and not can_replay(lstm.train().requires_grad_(False))
