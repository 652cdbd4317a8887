"""The two LSTM stacks on the CPU: many times faster than the plain loop, and equal to it within rounding.

What differs from the plain loop, each measured:

- The input matmul runs for many steps at once, and in layer 0 only for distinct words.
- Finished sentences drop out of a step.
- Large buffers are allocated once and written in place: fresh memory pages cost more than the arithmetic on them.
- All gates use one activation function; the factors that this needs are folded into the weights.
- Each direction has its own thread (see `threads`).

Forward only: gradients take the plain path.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from polyseme.nn.config import Precision
from polyseme.nn.lstm.layers import LstmLayer, LstmState
from polyseme.nn.matmul import ARM, prepare_matmul
from polyseme.nn.packing import blocks, last_words
from polyseme.nn.threads import check_cancelled, run_parallel

BLOCK = 256  # words per input matmul
DISTINCT = 1 << 25  # numbers in the table of distinct words times input weights (128 MiB); larger ones go block by block
Activation = Literal["tanh", "sigmoid"]
ACTIVATION: Activation = "sigmoid" if ARM else "tanh"  # tanh costs three times sigmoid on ARM, and three quarters of it on x86


class CpuLstm:
    """The weights of an `ElmoLstm`, prepared for fast inference; called like one. Build a new one when the weights change."""

    def __init__(
        self, stacks: list[list[LstmLayer]], precision: Precision = "fp32", activation: Activation = ACTIVATION
    ) -> None:
        self._stacks = [
            _Stack([_PreparedLayer(layer, precision, activation) for layer in layers], layers[0].config.residual, activation)
            for layers in stacks
        ]
        self._lock = threading.Lock()  # the buffers serve one call at a time

    def __call__(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        layers, width = state.hidden.shape[1], state.hidden.shape[3]
        outputs = torch.empty(layers, 2, index.shape[1], width)
        end = LstmState(torch.empty_like(state.hidden), state.cell.clone(memory_format=torch.contiguous_format))

        def run(d: int) -> None:
            with torch.inference_mode(), torch.autocast("cpu", enabled=False):  # the buffers are float32
                words = _Words(distinct, index[d], sizes)
                self._stacks[d](words, (state.hidden[d], end.cell[d]), outputs[:, d], end.hidden[d])

        with self._lock:
            run_parallel([lambda: run(0), lambda: run(1)])
        return outputs, end


@dataclass(frozen=True)
class _Words:
    """What one direction reads: distinct words (distinct, inputs), packed index into them (words,), rows of each step."""

    distinct: Tensor
    index: Tensor
    sizes: list[int]


class _PreparedLayer:
    """One layer's weights with the activation's factors folded in; gate order: input, forget, output, candidate."""

    def __init__(self, layer: LstmLayer, precision: Precision, activation: Activation) -> None:
        with torch.no_grad():
            i, f, g, o = torch.arange(len(layer.bias)).chunk(4)
            order = torch.cat([i, f, o, g])
            # tanh: sigmoid(x) = (1 + tanh(x / 2)) / 2; sigmoid: tanh(x) = 2 sigmoid(2 x) - 1
            factor = torch.ones(len(order), 1)
            factor[: 3 * len(i)] = 0.5 if activation == "tanh" else 1.0
            factor[3 * len(i) :] = 1.0 if activation == "tanh" else 2.0
            self.input = prepare_matmul(layer.input_weight[order] * factor, precision, layer.bias[order] * factor[:, 0])
            self.recurrent = prepare_matmul(layer.recurrent_weight[order] * factor, precision)
            last = 0.5 if activation == "tanh" else 2.0
            self.scale = last if layer.projection_weight is None else 1.0
            self.projection = (
                prepare_matmul(layer.projection_weight * last, precision) if layer.projection_weight is not None else None
            )
        self.dim = len(i)
        self.cell_clip, self.projection_clip = layer.cell_clip, layer.projection_clip


class _Stack:
    """All layers of one direction, and their buffers."""

    def __init__(self, layers: list[_PreparedLayer], residual: bool, activation: Activation) -> None:
        self.layers, self.residual = layers, residual
        self._cell = _tanh_cell if activation == "tanh" else _sigmoid_cell
        self._buffers: dict[str, Tensor] = {}

    def __call__(self, words: _Words, start: tuple[Tensor, Tensor], outputs: Tensor, end_hidden: Tensor) -> None:
        """Fill outputs (layers, words, output) and end_hidden; advance the cells of `start` (hidden, cells) to the end."""
        last = last_words(words.sizes)
        for level, layer in enumerate(self.layers):
            below = outputs[level - 1] if level else None
            self._layer(layer, words, below, (start[0][level], start[1][level]), outputs[level])
            torch.index_select(outputs[level], 0, last, out=end_hidden[level])
            if level and self.residual:
                outputs[level] += outputs[level - 1]

    def _layer(
        self, layer: _PreparedLayer, words: _Words, below: Tensor | None, start: tuple[Tensor, Tensor], out: Tensor
    ) -> None:
        hidden, cell = start
        dim = layer.dim
        y = self._buffer("y", words.sizes[0], dim)
        size, offset = 0, 0
        for gates in self._gates(layer, words, below):
            check_cancelled()
            if len(gates) != size:
                size = len(gates)
                c, m, h = cell[:size], y[:size], hidden[:size]
            if offset or bool(h.any()):
                gates = layer.recurrent.add(h, gates)
            self._cell(gates, c, m, dim, layer.cell_clip)
            h = out[offset : offset + size]
            if layer.projection is None:
                torch.mul(m, layer.scale, out=h)
            else:
                projected = layer.projection.multiply(m, h)
                if layer.projection_clip is not None:
                    torch.clamp(projected, -layer.projection_clip, layer.projection_clip, out=h)
                elif projected is not h:
                    h.copy_(projected)
            offset += size
            hidden = h

    def _gates(self, layer: _PreparedLayer, words: _Words, below: Tensor | None) -> Iterator[Tensor]:
        """The input matmul of each step, (rows, 4 dim); the caller may overwrite it."""
        width, offset = 4 * layer.dim, 0
        if below is None and len(words.distinct) * width <= DISTINCT:
            table = self._input(layer, words.distinct, "table")
            gates = self._buffer("gates", words.sizes[0], width)
            for size in words.sizes:
                yield torch.index_select(table, 0, words.index[offset : offset + size], out=gates[:size])
                offset += size
            return
        for steps in blocks(words.sizes, BLOCK):
            span = slice(offset, offset + sum(steps))
            rows = words.distinct.index_select(0, words.index[span]) if below is None else below[span]
            yield from self._input(layer, rows, "gates").split(steps)
            offset = span.stop

    def _input(self, layer: _PreparedLayer, rows: Tensor, name: str) -> Tensor:
        return layer.input.multiply(rows, self._buffer(name, len(rows), 4 * layer.dim))

    def _buffer(self, name: str, rows: int, width: int) -> Tensor:
        """(rows, width) of a buffer that grows and is never freed."""
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < rows or buffer.shape[1] != width:
            buffer = self._buffers[name] = torch.empty(rows, width)
        return buffer[:rows]


def _tanh_cell(gates: Tensor, c: Tensor, y: Tensor, dim: int, clip: float | None) -> None:
    """Write the new cell to `c` and twice the layer's output to `y`."""
    gates.tanh_()
    z = gates[:, 3 * dim :]
    c.addcmul_(c, gates[:, dim : 2 * dim])  # twice the part of the cell that is kept
    z.addcmul_(z, gates[:, :dim])  # twice the part of the candidate that is added
    c.lerp_(z, 0.5)
    if clip is not None:
        c.clamp_(-clip, clip)
    torch.tanh(c, out=y)
    y.addcmul_(y, gates[:, 2 * dim : 3 * dim])


def _sigmoid_cell(gates: Tensor, c: Tensor, y: Tensor, dim: int, clip: float | None) -> None:
    """Write the new cell to `c` and half the layer's output to `y`."""
    gates.sigmoid_()
    i = gates[:, :dim]
    c.mul_(gates[:, dim : 2 * dim]).addcmul_(i, gates[:, 3 * dim :], value=2.0).sub_(i)
    if clip is not None:
        c.clamp_(-clip, clip)
    torch.mul(c, 2.0, out=y).sigmoid_().sub_(0.5).mul_(gates[:, 2 * dim : 3 * dim])
