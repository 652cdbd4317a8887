"""LSTMs over texts with gradients: the fused way against the plain one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from polyseme.nn.config import LstmConfig
from polyseme.nn.lstm import bptt, packed_texts
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState, plain_only
from polyseme.nn.lstm.packed_texts import blocks_of
from polyseme.nn.packing import Packing
from tests.nn.lstm.test_elmo_lstm import CONFIGS

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = {"texts": [7, 1, 12, 3, 3, 20, 1], "equal": [4, 4, 4], "one": [5], "words": [1, 1, 1]}


class Task:
    """Random words, a random start state, and what the gradients of everything are."""

    def __init__(self, config: LstmConfig, lengths: list[int]) -> None:
        torch.manual_seed(5)
        self.lstm = ElmoLstm(8, config).to(DEVICE)
        packing = Packing(torch.tensor(lengths))
        self.sizes = packing.sizes
        self.distinct = torch.randn(9, 8, device=DEVICE, requires_grad=True)
        self.index = torch.randint(9, (2, sum(lengths)), device=DEVICE)
        zero = self.lstm.zero_state(len(lengths))
        hidden, cell = (torch.randn(part.shape, device=DEVICE) / 5 for part in (zero.hidden, zero.cell))
        self.state = LstmState(hidden.requires_grad_(), cell.requires_grad_())
        self.target = torch.randn(config.layers, 2, sum(lengths), config.output_size, device=DEVICE)
        self.weight = torch.randn_like(zero.hidden)

    def run(self) -> tuple[Tensor, LstmState, dict[str, Tensor]]:
        """The end's hidden state counts, too: gradients flow through it."""
        found, end = self.lstm(self.distinct, self.index, self.sizes, self.state)
        wanted = {"words": self.distinct, "hidden": self.state.hidden, "cell": self.state.cell}
        wanted |= dict(self.lstm.named_parameters())
        loss = (found * self.target).sum() + (end.hidden * self.weight).sum()
        grads = torch.autograd.grad(loss, list(wanted.values()))
        return found.detach(), end, dict(zip(wanted, grads, strict=True))


@pytest.mark.parametrize(("padding", "steps"), [(1.0, None), (1.25, None), (100.0, None), (1.25, 3)])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_fused_equals_plain(
    config: LstmConfig, lengths: list[int], padding: float, steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_texts, "PADDING", padding)
    task = Task(config, lengths)
    task.lstm.bptt = steps
    with plain_only():
        states, end, grads = task.run()
    taken = []
    monkeypatch.setattr(task.lstm, "plain", lambda *given: taken.append(given))
    found, found_end, found_grads = task.run()
    assert not taken
    torch.testing.assert_close(found, states, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(found_end.hidden, end.hidden, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(found_end.cell, end.cell, atol=2e-6, rtol=1e-5)
    for name, grad in grads.items():
        torch.testing.assert_close(found_grads[name], grad, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_gradients_end_where_they_are_cut() -> None:
    """The last word of a text changes nothing of the gradient of a word that is more steps before it."""
    task = Task(CONFIGS["published"], [7])
    task.index = torch.arange(7, device=DEVICE).expand(2, -1)
    for steps, reached in ((None, 7), (3, 1), (2, 1), (4, 3)):  # the last begins at steps 6, 6 and 4
        task.lstm.bptt = steps
        found, _ = task.lstm(task.distinct, task.index, task.sizes, task.state)
        (grad,) = torch.autograd.grad(found[-1, 0, -1].sum(), task.distinct)
        assert grad[:7].abs().sum(1).count_nonzero() == reached


def test_kernels_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    bptt_triton = pytest.importorskip("polyseme.nn.lstm.bptt_triton", reason="Triton is not installed", exc_type=ImportError)
    task = Task(CONFIGS["published"], [3, 1, 4])
    with plain_only():
        states, _, grads = task.run()
    monkeypatch.setattr(bptt, "kernels", lambda device: bptt_triton)
    found, _, found_grads = task.run()
    torch.testing.assert_close(found, states, atol=2e-6, rtol=1e-5)
    for name, grad in grads.items():
        torch.testing.assert_close(found_grads[name], grad, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("lengths", [[7, 1, 12, 3, 3, 20, 1], list(range(1, 200)), [1000, 1], [1]])
def test_blocks_hold_every_word_once_with_little_padding(lengths: list[int]) -> None:
    sizes = Packing(torch.tensor(lengths)).sizes
    blocks = blocks_of(sizes, torch.device("cpu"))
    assert sum(block.words for block in blocks) == sum(lengths)
    assert sum(len(block.ends) for block in blocks) == len(lengths)
    places = sum(block.steps * block.rows for block in blocks)
    assert places <= packed_texts.PADDING * sum(lengths)
    for block in blocks:
        assert block.read[block.places].tolist() == list(range(block.words))


def test_what_the_fused_way_does_not_compute_takes_the_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(CONFIGS["published"], [2, 3])
    monkeypatch.setattr(task.lstm, "fused", lambda *given: pytest.fail("fused"))
    lstm = task.lstm.double()
    state = LstmState(task.state.hidden.double(), task.state.cell.double())
    found, _ = lstm(task.distinct.double(), task.index, task.sizes, state)
    assert found.dtype == torch.float64 and found.requires_grad
