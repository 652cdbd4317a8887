"""The plain LSTM against an independent loop, and every fast path against the plain one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.nn.config import LstmConfig
from polyseme.nn.lstm import cpu as lstm_cpu
from polyseme.nn.lstm import cuda as lstm_cuda
from polyseme.nn.lstm.cell_torch import cell_step as plain_cell
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState, plain_only
from polyseme.nn.packing import Packing

CONFIGS = {
    "published": LstmConfig(cell_size=24, projection_size=8, cell_clip=0.4, projection_clip=0.2),
    "one layer": LstmConfig(cell_size=24, projection_size=8, layers=1, cell_clip=0.4, projection_clip=0.2),
    "three layers": LstmConfig(cell_size=12, projection_size=8, layers=3, cell_clip=0.4, projection_clip=None),
    "no projection": LstmConfig(cell_size=8, projection_size=None, cell_clip=0.4),
    "no clips": LstmConfig(cell_size=24, projection_size=8, cell_clip=None, projection_clip=None),
    "neither": LstmConfig(cell_size=8, projection_size=None, cell_clip=None, projection_clip=None),
    "no residual": LstmConfig(cell_size=24, projection_size=8, cell_clip=0.4, projection_clip=0.2, residual=False),
}
KERNELS = ("published", "neither")
"""Configs with and without all that the GPU kernels can leave out; the others leave out a part, or differ in the caller."""
LENGTHS = torch.tensor([3, 1, 7, 7, 2])


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def lstm(request: pytest.FixtureRequest) -> ElmoLstm:
    torch.manual_seed(1)
    return ElmoLstm(8, request.param).eval()


class Task:
    """Random sentences and a random start state, packed."""

    def __init__(self, lstm: ElmoLstm, lengths: Tensor = LENGTHS, distinct: int = 9) -> None:
        generator = torch.Generator().manual_seed(2)
        packing = Packing(lengths)
        self.sizes = packing.sizes
        self.distinct = torch.randn(distinct, 8, generator=generator)
        self.index = torch.randint(distinct, (2, int(lengths.sum())), generator=generator)
        zero = lstm.zero_state(len(lengths))
        self.state = LstmState(
            torch.randn(zero.hidden.shape, generator=generator) / 5, torch.randn(zero.cell.shape, generator=generator) / 5
        )

    def run(self, lstm: Callable[..., tuple[Tensor, LstmState]]) -> tuple[Tensor, LstmState]:
        return lstm(self.distinct, self.index, self.sizes, self.state)


def independent(lstm: ElmoLstm, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Word by word in float64 NumPy, one sentence after another."""
    config = lstm.config
    outputs = np.zeros((config.layers, 2, task.index.shape[1], config.output_size))
    hidden, cell = task.state.hidden.double().numpy().copy(), task.state.cell.double().numpy().copy()
    starts = np.cumsum([0, *task.sizes[:-1]])
    for d, layers in enumerate(lstm.stacks()):
        for row in range(task.sizes[0]):
            places = [start + row for start, size in zip(starts, task.sizes, strict=True) if row < size]
            for place in places:
                x = task.distinct[task.index[d, place]].double().numpy()
                for level, layer in enumerate(layers):
                    weights = {name: value.double().detach().numpy() for name, value in layer.named_parameters()}
                    h, c = hidden[d, level, row], cell[d, level, row]
                    z = weights["input_weight"] @ x + weights["recurrent_weight"] @ h + weights["bias"]
                    i, f, g, o = np.split(z, 4)
                    c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
                    c = c if config.cell_clip is None else np.clip(c, -config.cell_clip, config.cell_clip)
                    h = np.tanh(c) / (1 + np.exp(-o))
                    if config.projection_size is not None:
                        h = weights["projection_weight"] @ h
                        clip = config.projection_clip
                        h = h if clip is None else np.clip(h, -clip, clip)
                    hidden[d, level, row], cell[d, level, row] = h, c
                    x = h + x if config.residual and level else h
                    outputs[level, d, place] = x
    return outputs, hidden, cell


def check(found: tuple[Tensor, LstmState], expected: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    outputs, end = found
    np.testing.assert_allclose(outputs.detach().numpy(), expected[0], atol=2e-6)
    np.testing.assert_allclose(end.hidden.detach().numpy(), expected[1], atol=2e-6)
    np.testing.assert_allclose(end.cell.detach().numpy(), expected[2], atol=2e-6)


def test_plain(lstm: ElmoLstm) -> None:
    task = Task(lstm)
    check(task.run(lstm.plain), independent(lstm, task))


def test_clips_fire_in_these_tests() -> None:
    lstm = ElmoLstm(8, CONFIGS["published"])
    outputs, end = Task(lstm).run(lstm.plain)
    assert bool((outputs[0].abs() >= 0.2 - 1e-7).any())
    assert bool((end.cell.abs() >= 0.4 - 1e-7).any())


@pytest.mark.parametrize("activation", ["tanh", "sigmoid"])
@pytest.mark.parametrize("table", [lstm_cpu.DISTINCT, 0], ids=["distinct words", "block by block"])
def test_cpu(lstm: ElmoLstm, activation: str, table: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm_cpu, "DISTINCT", table)
    monkeypatch.setattr(lstm_cpu, "BLOCK", 6)
    task = Task(lstm)
    with torch.inference_mode():
        check(task.run(lstm_cpu.CpuLstm(lstm.stacks(), "fp32", activation)), independent(lstm, task))


def test_cpu_directions_in_parallel(lstm: ElmoLstm) -> None:
    task, threads = Task(lstm), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.inference_mode():
            check(task.run(lstm_cpu.CpuLstm(lstm.stacks())), independent(lstm, task))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def gpu_paths() -> Iterator[object]:
    """Configs, sizes and kernels; of Triton's slow interpreter the quick tests have what differs in the kernel."""
    sizes = {"distinct words": lstm_cuda.NUMBERS, "block by block": 64}
    for name, size in itertools.product(CONFIGS, sizes):
        yield pytest.param(CONFIGS[name], sizes[size], lstm_cuda.Kernels(plain_cell), id=f"{name}-{size}-plain")
    try:
        from polyseme.nn.lstm.cell_triton import cell_step
        from polyseme.nn.lstm.steps_triton import run_steps
    except ImportError:
        yield pytest.param(None, 0, None, id="triton", marks=pytest.mark.skip(reason="Triton is not installed"))
        return
    for name, size in itertools.product(CONFIGS, sizes):
        quick = name == KERNELS[0] and size == "block by block"
        marks = () if quick else pytest.mark.slow
        all_steps = lstm_cuda.Kernels(cell_step, run_steps, (torch.float32,))
        for how, kernels in (("step", lstm_cuda.Kernels(cell_step)), ("all steps", all_steps)):
            yield pytest.param(CONFIGS[name], sizes[size], kernels, id=f"{name}-{size}-triton-{how}", marks=marks)


@pytest.mark.parametrize(("config", "numbers", "kernels"), list(gpu_paths()))
def test_gpu_path(config: LstmConfig, kernels: lstm_cuda.Kernels, numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lstm_cuda, "NUMBERS", numbers)
    torch.manual_seed(1)
    lstm = ElmoLstm(8, config).eval()
    task = Task(lstm, torch.tensor([2, 1, 4, 4, 3]))
    expected = independent(lstm, task)
    device = "cuda" if torch.cuda.is_available() else "cpu"  # without a GPU, Triton's interpreter runs the kernel
    task.distinct, task.index = task.distinct.to(device), task.index.to(device)
    task.state = LstmState(task.state.hidden.to(device), task.state.cell.to(device))
    with torch.no_grad():
        outputs, end = task.run(lstm_cuda.CudaLstm(lstm.to(device).stacks(), "fp32", kernels))
    check((outputs.cpu(), LstmState(end.hidden.cpu(), end.cell.cpu())), expected)


def test_all_steps_of_many_sentences_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    steps_triton = pytest.importorskip("polyseme.nn.lstm.steps_triton", reason="Triton is not installed")
    monkeypatch.setattr(steps_triton, "_TILE", 1)  # 16 units at a time
    torch.manual_seed(1)
    lstm = ElmoLstm(8, CONFIGS["published"]).eval()
    task = Task(lstm, torch.arange(19) % 3 + 1)  # more sentences than one program has
    expected = independent(lstm, task)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    task.distinct, task.index = task.distinct.to(device), task.index.to(device)
    task.state = LstmState(task.state.hidden.to(device), task.state.cell.to(device))
    kernels = lstm_cuda.Kernels(plain_cell, steps_triton.run_steps, (torch.float32,))
    with torch.no_grad():
        outputs, end = task.run(lstm_cuda.CudaLstm(lstm.to(device).stacks(), "fp32", kernels))
    check((outputs.cpu(), LstmState(end.hidden.cpu(), end.cell.cpu())), expected)


@pytest.mark.parametrize(("precision", "least"), [("fp16", 0.9999), ("bf16", 0.999), ("int8", 0.995)])
def test_lower_precision_is_close(precision: str, least: float) -> None:
    torch.manual_seed(3)
    lstm = ElmoLstm(8, LstmConfig(cell_size=64, projection_size=32))
    task = Task(lstm)
    with torch.inference_mode():
        exact = task.run(lstm_cpu.CpuLstm(lstm.stacks()))[0]
        close = task.run(lstm_cpu.CpuLstm(lstm.stacks(), precision))[0]  # type: ignore[arg-type]
    assert not torch.equal(exact, close)
    assert float(torch.cosine_similarity(exact, close, dim=-1).min()) >= least


def test_int8_belongs_to_the_cpu() -> None:
    with pytest.raises(UsageError, match="precision 'int8' works only on a CPU; on a GPU use fp32, fp16, bf16"):
        lstm_cuda.CudaLstm(ElmoLstm(8, CONFIGS["published"]).stacks(), "int8")


def test_gradients_take_the_plain_path(lstm: ElmoLstm, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(lstm)
    task.run(lstm)[0].square().sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in lstm.parameters())


def test_the_fast_path_is_taken_and_follows_the_weights() -> None:
    lstm = ElmoLstm(8, CONFIGS["published"])
    task = Task(lstm)
    with torch.no_grad():
        before = task.run(lstm)[0]
        assert isinstance(lstm._prepared[1], lstm_cpu.CpuLstm)
        lstm.forward_layers[0].bias += 1.0
        after = task.run(lstm)[0]
        with plain_only():
            plain = task.run(lstm)[0]
    assert not torch.allclose(before, after, atol=1e-3)
    torch.testing.assert_close(after, plain, atol=2e-6, rtol=0)


def test_other_number_types_take_the_plain_path() -> None:
    lstm = ElmoLstm(8, CONFIGS["published"]).double()
    task = Task(lstm)
    task.distinct, task.state = task.distinct.double(), LstmState(task.state.hidden.double(), task.state.cell.double())
    with torch.no_grad():
        assert task.run(lstm)[0].dtype == torch.float64
    assert lstm._prepared is None


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"cell_size": 0}, "cell_size is 0; allowed: 1 or more"),
        ({"projection_size": 0}, "projection_size is 0; allowed: 1 or more"),
        ({"cell_clip": -1.0}, "cell_clip is -1.0; allowed: above 0"),
    ],
)
def test_bad_configs(bad: dict, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        LstmConfig(**bad)
