"""The two LSTM stacks on a GPU: one batched matmul per step for both directions, and the cell as one kernel.

With small weights in 16 bits, one kernel reads all steps of a layer (`steps_triton`). Else a step is four launches (recurrent
matmul, cell, projection, clipping) instead of about fifty. Input matmuls run for many steps at once, in layer 0 only for
distinct words; the kernels gather from them. Without Triton the cell is a few plain operations. Forward only: gradients take
the plain path.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.config import Precision
from polyseme.nn.lstm.layers import LstmLayer, LstmState
from polyseme.nn.packing import blocks, last_words
from polyseme.nn.to_device import to_device

NUMBERS = 1 << 28  # in one table of input matmuls (1 GiB of fp32); more words go block by block
SMALL = 1 << 20  # recurrent and projection weights of one direction, at most, for one kernel of all steps
_TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
CellStep = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, float | None], None]
"""`cell_step` of `cell_triton` or `cell_torch`."""
RunSteps = Callable[
    [Tensor, Tensor, list[int], Tensor, Tensor, tuple[Tensor, Tensor], tuple[float | None, float | None], Tensor], None
]
"""`run_steps` of `steps_triton`."""


@dataclass(frozen=True)
class Kernels:
    """How steps are computed; without `all_steps`, one at a time."""

    cell_step: CellStep
    all_steps: RunSteps | None = None
    all_steps_types: tuple[torch.dtype, ...] = (torch.float16, torch.bfloat16)
    """In fp32 the matmuls of many sentences at once are faster."""


@dataclass(frozen=True)
class _Layer:
    """One layer of both directions, laid out for batched matmuls; (2, inputs, outputs) each."""

    input: Tensor
    recurrent: Tensor
    bias: Tensor
    projection: Tensor | None

    @property
    def is_small(self) -> bool:
        """Whether the GPU's cache holds the weights, so that one kernel may read all steps."""
        return self.projection is not None and self.recurrent[0].numel() + self.projection[0].numel() <= SMALL


class CudaLstm:
    """The weights of an `ElmoLstm`, prepared for fast inference; called like one. Build a new one when the weights change."""

    def __init__(self, stacks: list[list[LstmLayer]], precision: Precision = "fp32", kernels: Kernels | None = None) -> None:
        if precision not in _TYPES:
            raise UsageError(f"precision {precision!r} works only on a CPU; on a GPU use {', '.join(_TYPES)}")
        self._type = _TYPES[precision]
        self._config = stacks[0][0].config
        self._kernels = kernels or _kernels()
        with torch.no_grad():
            self._layers = [self._prepare(pair) for pair in zip(*stacks, strict=True)]

    def _prepare(self, pair: tuple[LstmLayer, ...]) -> _Layer:
        def both(name: str) -> Tensor:
            return torch.stack([getattr(layer, name).mT for layer in pair]).to(self._type).contiguous()

        bias = torch.stack([layer.bias[None] for layer in pair]).to(self._type)
        projection = both("projection_weight") if self._config.projection_size is not None else None
        return _Layer(both("input_weight"), both("recurrent_weight"), bias, projection)

    def __call__(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        shape = (len(self._layers), 2, index.shape[1], self._config.output_size)
        outputs = torch.empty(shape, device=distinct.device, dtype=self._type)
        end = LstmState(torch.empty_like(state.hidden), torch.empty_like(state.cell))
        last = to_device(last_words(sizes), distinct.device)
        distinct = distinct.to(self._type)
        for level, layer in enumerate(self._layers):
            cell = state.cell[:, level].float().clone(memory_format=torch.contiguous_format)
            inputs = self._input_blocks(layer, distinct, index, outputs[level - 1] if level else None, sizes)
            self._layer(layer, inputs, state.hidden[:, level].to(self._type), cell, outputs[level])
            end.cell[:, level] = cell
            end.hidden[:, level] = outputs[level].index_select(1, last)
            if level and self._config.residual:
                outputs[level] += outputs[level - 1]
        return outputs.float(), end

    def _layer(self, layer: _Layer, inputs: Iterator[_Inputs], hidden: Tensor, cell: Tensor, out: Tensor) -> None:
        """Fill `out` (2, words, output) and advance `cell` (2, rows, dim) to the end state."""
        if self._kernels.all_steps is not None and layer.is_small and self._type in self._kernels.all_steps_types:
            self._all_steps(self._kernels.all_steps, layer, inputs, hidden, cell, out)
            return
        clip, dim = self._config.projection_clip, self._config.cell_size
        rows = cell.shape[1]
        gates, middle = out.new_empty(2 * rows * 4 * dim), out.new_empty(2 * rows * dim)
        offset = 0
        for block in inputs:
            position = 0
            for size in block.sizes:
                recurrent = gates[: 2 * size * 4 * dim].view(2, size, 4 * dim)
                m = middle[: 2 * size * dim].view(2, size, dim)
                torch.bmm(hidden[:, :size], layer.recurrent, out=recurrent)
                self._kernels.cell_step(recurrent, block.table, block.index[:, position:], cell, m, self._config.cell_clip)
                hidden = out[:, offset : offset + size]
                if layer.projection is None:
                    hidden.copy_(m)
                else:
                    torch.bmm(m, layer.projection, out=hidden)
                    if clip is not None:
                        hidden.clamp_(-clip, clip)
                offset += size
                position += size

    def _all_steps(
        self, run_steps: RunSteps, layer: _Layer, inputs: Iterator[_Inputs], hidden: Tensor, cell: Tensor, out: Tensor
    ) -> None:
        """The same, by one kernel for each block of input matmuls."""
        assert layer.projection is not None
        weights, clips = (layer.recurrent, layer.projection), (self._config.cell_clip, self._config.projection_clip)
        hidden = hidden.clone(memory_format=torch.contiguous_format)
        offset = 0
        for block in inputs:
            words = sum(block.sizes)
            run_steps(block.table, block.index, block.sizes, hidden, cell, weights, clips, out[:, offset : offset + words])
            offset += words

    def _input_blocks(
        self, layer: _Layer, distinct: Tensor, index: Tensor, below: Tensor | None, sizes: list[int]
    ) -> Iterator[_Inputs]:
        """Yield input matmuls for blocks of steps; in layer 0 one table of distinct words for all steps, if it fits."""
        most = NUMBERS // (8 * self._config.cell_size)
        if below is None and len(distinct) <= most:
            yield _Inputs(torch.baddbmm(layer.bias, distinct.expand(2, -1, -1), layer.input), index, sizes)
            return
        offset = 0
        for steps in blocks(sizes, most):
            span = slice(offset, offset + sum(steps))
            rows = distinct[index[:, span]] if below is None else below[:, span]
            straight = torch.arange(sum(steps), device=index.device).repeat(2, 1)
            yield _Inputs(torch.baddbmm(layer.bias, rows, layer.input), straight, steps)
            offset = span.stop


@dataclass(frozen=True)
class _Inputs:
    """Input matmuls (2, n, 4 dim) with bias, and the one of each word of some steps (2, words)."""

    table: Tensor
    index: Tensor
    sizes: list[int]


def _kernels() -> Kernels:
    if importlib.util.find_spec("triton") is None:
        from polyseme.nn.lstm.cell_torch import cell_step as plain

        return Kernels(plain)
    from polyseme.nn.lstm.cell_triton import cell_step
    from polyseme.nn.lstm.steps_triton import run_steps

    return Kernels(cell_step, run_steps)
