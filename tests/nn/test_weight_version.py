"""What is derived from weights is made anew when they change, whoever changes them."""

from __future__ import annotations

import pytest
import torch

from polyseme.nn.config import LstmConfig
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import plain_only
from polyseme.nn.weight_version import weight_version
from tests.nn.lstm.test_elmo_lstm import Task

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_step_is_seen(fused: bool, device: str) -> None:
    """Fused optimizers write weights without counting it; the fast path must not go on with the old ones."""
    torch.manual_seed(0)
    lstm = ElmoLstm(8, LstmConfig(cell_size=12, projection_size=8)).to(device)
    frozen = ElmoLstm(8, LstmConfig(cell_size=12, projection_size=8)).to(device)
    task = Task(lstm)
    task.distinct, task.index = task.distinct.to(device), task.index.to(device)
    task.state = lstm.zero_state(5)
    optimizer = torch.optim.AdamW(lstm.parameters(), lr=0.1, fused=fused)
    with torch.no_grad():
        task.run(lstm)
    before = weight_version(lstm), weight_version(frozen)
    task.run(lstm)[0].sum().backward()
    optimizer.step()
    assert [weight._version for weight in lstm.parameters()] != [entry[1] for entry in before[0]]
    assert weight_version(lstm) != before[0] and weight_version(frozen) == before[1]
    with torch.no_grad():
        fast = task.run(lstm)[0]
        with plain_only():
            torch.testing.assert_close(fast, task.run(lstm)[0], atol=1e-5, rtol=1e-4)
