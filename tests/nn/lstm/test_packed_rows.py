"""LSTMs over packed rows: the plain way against whole sentences, the fused way and its gradients against the plain one."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from polyseme.nn.config import LstmConfig
from polyseme.nn.lstm import bptt, bptt_torch
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState, plain_only
from polyseme.nn.lstm.packed_rows import Layer, fused_layer, plain_layer, run_packed_rows
from tests.nn.lstm.test_elmo_lstm import CONFIGS, KERNELS

STEPS, ROWS = 3, 5
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"  # without a GPU Triton's kernels run in its interpreter


NAMES = {True: "sentences", False: "stream"}


def kernels() -> list[object]:
    """Modules, each with sentences and as a stream; in Triton's interpreter the latter is slow."""
    found = [
        pytest.param(CONFIGS[name], bptt_torch, begins, id=f"{name}-torch-{NAMES[begins]}")
        for name in CONFIGS
        for begins in (True, False)
    ]
    try:
        from polyseme.nn.lstm import bptt_triton
    except ImportError:
        return [*found, pytest.param(None, None, True, marks=pytest.mark.skip(reason="Triton is not installed"))]
    for name in CONFIGS:
        quick = name == KERNELS[0]  # other layers call the same kernels
        marks = () if quick else pytest.mark.slow
        found.append(pytest.param(CONFIGS[name], bptt_triton, True, id=f"{name}-triton-sentences", marks=marks))
        found.append(pytest.param(CONFIGS[name], bptt_triton, False, id=f"{name}-triton-stream", marks=pytest.mark.slow))
    return found


class Task:
    """Random vectors in rows, sentences that begin here and there, states, and what every weight's gradient is."""

    def __init__(self, config: LstmConfig, *, begins: bool = True) -> None:
        torch.manual_seed(3)
        self.lstm = ElmoLstm(8, config).to(DEVICE)
        self.inputs = torch.randn(2, STEPS, ROWS, 8, device=DEVICE, requires_grad=True)
        self.begins = torch.rand(STEPS, ROWS, device=DEVICE) < 0.3 if begins else None
        self.start, self.carried = self.state(1), self.state(ROWS)
        self.target = torch.randn(2, STEPS, ROWS, config.output_size, device=DEVICE)

    def state(self, rows: int) -> LstmState:
        zero = self.lstm.zero_state(rows)
        hidden, cell = (torch.randn(part.shape, device=DEVICE) / 5 for part in (zero.hidden, zero.cell))
        return LstmState(hidden.requires_grad_(), cell.requires_grad_())

    def run(self, layer: Layer) -> tuple[Tensor, LstmState, dict[str, Tensor]]:
        top, end = run_packed_rows(self.lstm, self.inputs, self.begins, self.start, self.carried, layer=layer)
        wanted = {"inputs": self.inputs, **dict(self.lstm.named_parameters())}
        if self.begins is not None:
            wanted |= {"start hidden": self.start.hidden, "start cell": self.start.cell}
        found = torch.autograd.grad((top * self.target).sum(), list(wanted.values()))
        return top.detach(), end, dict(zip(wanted, found, strict=True))


@pytest.mark.parametrize(("config", "module", "begins"), kernels())
def test_fused_equals_plain(config: LstmConfig, module: ModuleType, begins: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bptt, "kernels", lambda device: module)
    task = Task(config, begins=begins)
    top, end, grads = task.run(plain_layer)
    found, found_end, found_grads = task.run(fused_layer)
    torch.testing.assert_close(found, top, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(found_end.hidden, end.hidden, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(found_end.cell, end.cell, atol=2e-6, rtol=1e-5)
    for name, grad in grads.items():
        torch.testing.assert_close(found_grads[name], grad, atol=1e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}")


def test_gradient_of_the_layer_by_differences() -> None:
    """The fused layer against finite differences, in float64, its carried state included."""
    torch.manual_seed(0)
    config = LstmConfig(cell_size=3, projection_size=2, cell_clip=0.6, projection_clip=0.5)

    def double(*shape: int) -> Tensor:
        return (torch.randn(*shape, dtype=torch.float64) / 2).requires_grad_()

    begins = torch.tensor([[0, 1], [1, 0], [0, 0]], dtype=torch.bool)
    parts = [double(2, 3, 2, 4), double(2, 12, 4), double(2, 12, 2), double(2, 12), double(2, 2, 3)]
    parts += [double(2, 2, 2), double(2, 2, 3), double(2, 1, 2), double(2, 1, 3)]
    target = torch.randn(2, 3, 2, 2, dtype=torch.float64)
    clips = (config.cell_clip, config.projection_clip)

    def value(tensors: list[Tensor]) -> Tensor:
        return (bptt.Bptt.apply(begins, clips, *tensors)[0] * target).sum()

    grads = torch.autograd.grad(value(parts), parts)
    for place, grad in enumerate(grads):
        way = torch.randn_like(grad)
        ends = [value([p + e * way if i == place else p for i, p in enumerate(parts)]) for e in (1e-6, -1e-6)]
        assert (grad * way).sum().item() == pytest.approx(((ends[0] - ends[1]) / 2e-6).item(), rel=1e-5)


def test_packed_rows_give_what_whole_sentences_give() -> None:
    """Two sentences in one row, cut across batches, equal the same sentences read alone from the start state."""
    torch.manual_seed(1)
    lstm = ElmoLstm(8, CONFIGS["published"]).eval()
    start = LstmState(torch.randn(2, 2, 1, 8) / 5, torch.randn(2, 2, 1, 24) / 5)
    words = torch.randn(7, 8)
    left, right = [0, 1, 2, 3, 4, 5, 6], [2, 1, 0, 6, 5, 4, 3]  # sentences of 3 and 4 words, from both sides
    begins = torch.tensor([True, False, False, True, False, False, False])[:, None]
    inputs = words[torch.tensor([left, right])][:, :, None]
    carried, tops = start.expand(1), []
    with torch.no_grad():
        for place in (slice(0, 2), slice(2, 6), slice(6, 7)):
            top, carried = run_packed_rows(lstm, inputs[:, place], begins[place], start, carried)
            tops.append(top[:, :, 0])
        for sentence in (slice(0, 3), slice(3, 7)):
            index = torch.tensor([left[sentence], right[sentence]])
            outputs, _ = lstm.plain(words, index, [1] * index.shape[1], start)
            torch.testing.assert_close(torch.cat(tops, 1)[:, sentence], outputs[-1], atol=2e-6, rtol=1e-5)


def test_dropout_is_the_same_both_ways() -> None:
    task = Task(CONFIGS["published"])
    task.lstm.dropout = 0.5
    found = []
    for layer in (plain_layer, fused_layer):
        torch.manual_seed(9)
        found.append(task.run(layer)[0])
    torch.testing.assert_close(*found, atol=2e-6, rtol=1e-5)
    with plain_only():
        torch.manual_seed(9)
        top, _ = run_packed_rows(task.lstm, task.inputs, task.begins, task.start, task.carried)
    torch.testing.assert_close(top, found[0], atol=0, rtol=0)
