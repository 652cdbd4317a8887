"""What is derived from weights is made anew when they change, whoever changes them."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

from polyseme.nn.config import LstmConfig
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import plain_only
from polyseme.nn.weight_version import count_fused_steps, weight_version
from tests.nn.lstm.test_elmo_lstm import Task

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
CONFIG = LstmConfig(cell_size=12, projection_size=8)


def built(device: str) -> tuple[ElmoLstm, Task]:
    torch.manual_seed(0)
    lstm = ElmoLstm(8, CONFIG).to(device)
    task = Task(lstm)
    task.distinct, task.index = task.distinct.to(device), task.index.to(device)
    task.state = lstm.zero_state(5)
    return lstm, task


def check(lstm: ElmoLstm, task: Task) -> None:
    """The fast path gives what the plain one gives for the weights as they are."""
    with torch.no_grad():
        fast = task.run(lstm)[0]
        with plain_only():
            torch.testing.assert_close(fast, task.run(lstm)[0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("asked", ["before", "between", "both"])
@pytest.mark.parametrize("cleared", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.AdamW, pytest.param(torch.optim.SGD, marks=pytest.mark.slow)])  # slow: the same
@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_step_is_seen(fused: bool, kind: type, cleared: bool, asked: str, device: str) -> None:
    """Fused optimizers write weights without counting it; the fast path must not go on with the old ones."""
    lstm, task = built(device)
    other = ElmoLstm(8, CONFIG).to(device)
    optimizer = kind(lstm.parameters(), lr=0.1, fused=fused)
    if asked != "between":
        check(lstm, task)
    before = weight_version(lstm), weight_version(other)
    task.run(lstm)[0].sum().backward()
    if asked != "before":
        check(lstm, task)
    optimizer.step()
    if cleared:
        optimizer.zero_grad()
    assert weight_version(lstm) != before[0] and weight_version(other) == before[1]
    check(lstm, task)


@pytest.mark.parametrize("device", DEVICES)
def test_weights_frozen_before_and_after_training(device: str) -> None:
    lstm, task = built(device)
    lstm.requires_grad_(False)
    check(lstm, task)
    lstm.requires_grad_(True)
    optimizer = torch.optim.AdamW(lstm.parameters(), lr=0.1, fused=True)
    count_fused_steps(optimizer)
    task.run(lstm)[0].sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    lstm.requires_grad_(False)
    check(lstm, task)


def _load(lstm: ElmoLstm) -> None:
    lstm.load_state_dict({name: value + 1 for name, value in lstm.state_dict().items()})


def _write(lstm: ElmoLstm) -> None:
    with torch.no_grad():
        lstm.forward_layers[0].bias += 1.0


def _data(lstm: ElmoLstm) -> None:
    for weight in lstm.parameters():
        weight.data.add_(1.0)


def _replace(lstm: ElmoLstm) -> None:
    layer = lstm.backward_layers[1]
    layer.bias = torch.nn.Parameter(layer.bias.detach() + 1)


@pytest.mark.parametrize("change", [_load, _write, _data, _replace])
def test_other_changes_are_seen(change: Callable[[ElmoLstm], None]) -> None:
    lstm, task = built("cpu")
    check(lstm, task)
    before = weight_version(lstm)
    assert weight_version(lstm) == before
    change(lstm)
    assert weight_version(lstm) != before
    check(lstm, task)


def test_a_sparse_fused_step_is_seen() -> None:
    """One row of a large table: hardly among the numbers that are looked at."""
    table = torch.nn.Embedding(5000, 8)
    optimizer = torch.optim.SGD(table.parameters(), lr=1e-3, fused=True)
    before = weight_version(table)
    table(torch.tensor([7])).sum().backward()
    between = weight_version(table)
    optimizer.step()
    after = weight_version(table)
    optimizer.zero_grad()
    assert len({before, between, after, weight_version(table)}) == 4


def test_moves_to_another_type_and_back_are_seen() -> None:
    lstm, task = built("cpu")
    check(lstm, task)
    before = weight_version(lstm)
    lstm.to(torch.bfloat16).to(torch.float32)  # rounded
    assert weight_version(lstm) != before
    check(lstm, task)


def test_copies_count_for_themselves() -> None:
    lstm, task = built("cpu")
    check(lstm, task)
    other = copy.deepcopy(lstm)
    versions = weight_version(lstm), weight_version(other)
    task.run(other)[0].sum().backward()
    torch.optim.AdamW(other.parameters(), lr=0.1, fused=True).step()
    assert weight_version(lstm) == versions[0] and weight_version(other) != versions[1]
    check(other, task)


def test_other_optimizers_of_the_process_are_left_alone() -> None:
    from torch.optim import optimizer

    import polyseme.encoders.elmo  # noqa: F401

    assert not optimizer._global_optimizer_post_hooks and not optimizer._global_optimizer_pre_hooks
