"""The two stacked LSTMs of ELMo, in plain PyTorch: projection, clips, residual, one stack for each direction.

This is the reference that every faster path (`cpu`, `cuda`) must equal, and the path that gradients take.
`torch.nn.LSTM(proj_size=...)` cannot stand here: it has no clips, and without them the published models give other vectors
(Peters et al. 2018, "Deep contextualized word representations"; clips as in Sak et al. 2014).

A direction reads packed words (see `packing`): the backward stack gets the same sentences from their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.base.config import Config, ConfigError
from polyseme.nn.products import Precision
from polyseme.nn.stamp import stamp

_plain_only = False


@contextmanager
def plain_only() -> Iterator[None]:
    """Within this block every LSTM takes the plain path: to compare, or to look for a fault."""
    global _plain_only
    before, _plain_only = _plain_only, True
    try:
        yield
    finally:
        _plain_only = before


def plain_wanted() -> bool:
    """Whether this runs within `plain_only`."""
    return _plain_only


@dataclass(frozen=True, kw_only=True)
class LstmConfig(Config):
    """Sizes of the two LSTM stacks."""

    dim: int = 4096
    """Size of a cell."""
    projection: int | None = 512
    """Size of a layer's output; None: no projection, the output has the size of the cell."""
    layers: int = 2
    """LSTM layers in each direction."""
    cell_clip: float | None = 3.0
    """Cells are kept within plus and minus this; None: not clipped."""
    projection_clip: float | None = 3.0
    """Projected outputs are kept within plus and minus this; None: not clipped."""
    residual: bool = True
    """Add a layer's input to its output, from the second LSTM layer on."""

    def __post_init__(self) -> None:
        for name in ("dim", "layers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.projection is not None and self.projection < 1:
            raise ConfigError(f"projection is {self.projection}; it must be at least 1, or null for none")
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip is not None and not clip > 0:
                raise ConfigError(f"{name} is {clip}; it must be above 0, or null for no clip")

    @property
    def output(self) -> int:
        """Size of a layer's output in one direction."""
        return self.projection or self.dim


@dataclass(frozen=True)
class State:
    """What the LSTMs remember: `hidden` (2, layers, rows, output) and `cell` (2, layers, rows, dim); 0 is forward."""

    hidden: Tensor
    cell: Tensor

    def rows(self, index: Tensor) -> State:
        """The state with its rows chosen by `index`."""
        return State(self.hidden.index_select(2, index), self.cell.index_select(2, index))

    def expand(self, rows: int) -> State:
        """A state of one row, repeated."""
        return State(self.hidden.expand(-1, -1, rows, -1), self.cell.expand(-1, -1, rows, -1))


class LstmLayer(nn.Module):
    """The weights of one layer in one direction; gates in PyTorch's order: input, forget, candidate, output."""

    def __init__(self, inputs: int, config: LstmConfig) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * config.dim, inputs))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * config.dim, config.output))
        self.bias = nn.Parameter(torch.zeros(4 * config.dim))
        self.projection_weight = (
            nn.Parameter(torch.empty(config.projection, config.dim)) if config.projection is not None else None
        )
        self.cell_clip, self.projection_clip = config.cell_clip, config.projection_clip
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform matrices, zero biases, and one for the forget gate, so that cells remember at first."""
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        dim = self.bias.shape[0] // 4
        with torch.no_grad():
            self.bias.zero_()[dim : 2 * dim] = 1.0

    def step(self, gates: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One time step: input products (rows, 4 dim) and the state before it -> hidden and cell after it."""
        gates = gates + hidden @ self.recurrent_weight.T
        i, f, g, o = gates.chunk(4, dim=1)
        cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
        if self.cell_clip is not None:
            cell = cell.clamp(-self.cell_clip, self.cell_clip)
        hidden = torch.sigmoid(o) * torch.tanh(cell)
        if self.projection_weight is not None:
            hidden = hidden @ self.projection_weight.T
            if self.projection_clip is not None:
                hidden = hidden.clamp(-self.projection_clip, self.projection_clip)
        return hidden, cell

    def forward(self, inputs: Tensor, sizes: list[int], hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Packed inputs (words, inputs) and the state of all rows -> outputs (words, output), end state of all rows."""
        products = inputs @ self.input_weight.T + self.bias
        outputs, offset = [], 0
        for size in sizes:
            h, c = self.step(products[offset : offset + size], hidden[:size], cell[:size])
            # rows that have ended keep the state of their true end
            hidden, cell = torch.cat([h, hidden[size:]]), torch.cat([c, cell[size:]])
            outputs.append(h)
            offset += size
        return torch.cat(outputs), hidden, cell


class BiLstm(nn.Module):
    """Two stacks of LSTMs that never see each other: one reads from the left, one from the right.

    Needs vectors of distinct words (distinct, inputs), the packed index of each direction into them (2, words), the sizes
    of the steps and a start state with rows sorted as packed. Gives each layer's outputs, packed in the direction's own
    reading order, (layers, 2, words, output), and the end state.
    """

    def __init__(self, inputs: int, config: LstmConfig) -> None:
        super().__init__()
        self.config = config
        self.precision: Precision = "fp32"
        """Of the products on the fast path; the plain path and gradients are not touched by it."""
        self.dropout = 0.0
        """On the input of every layer, in training only; the residual adds the input as dropped (Peters et al. 2018)."""
        self._prepared: tuple[Any, Callable[..., tuple[Tensor, State]]] | None = None
        widths = [inputs] + [config.output] * (config.layers - 1)
        self.forward_layers = nn.ModuleList(LstmLayer(width, config) for width in widths)
        self.backward_layers = nn.ModuleList(LstmLayer(width, config) for width in widths)

    def __getstate__(self) -> dict[str, Any]:
        """Copies prepare their weights anew."""
        return {**super().__getstate__(), "_prepared": None}

    def stacks(self) -> list[list[LstmLayer]]:
        """The layers, forward direction first."""
        return [list(self.forward_layers), list(self.backward_layers)]  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> State:
        """A state of zeros."""
        weight = self.stacks()[0][0].bias
        shape = (2, self.config.layers, rows)
        return State(weight.new_zeros(*shape, self.config.output), weight.new_zeros(*shape, self.config.dim))

    def forward(self, distinct: Tensor, index: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        fast = self._fast(distinct)
        return (fast or self.plain)(distinct, index, sizes, state)

    def _fast(self, distinct: Tensor) -> Callable[..., tuple[Tensor, State]] | None:
        """The fast path for the weights as they are now; None where gradients or other number types need the plain one."""
        if _plain_only or distinct.dtype != torch.float32 or distinct.device.type not in ("cpu", "cuda"):
            return None
        if torch.is_grad_enabled() and (distinct.requires_grad or any(p.requires_grad for p in self.parameters())):
            return None
        now = (stamp(self), self.precision)
        if self._prepared is None or self._prepared[0] != now:
            if distinct.device.type == "cpu":
                from polyseme.nn.lstm.cpu import CpuLstm as Fast
            else:
                from polyseme.nn.lstm.cuda import CudaLstm as Fast  # type: ignore[assignment]
            self._prepared = (now, Fast(self, self.precision))
        return self._prepared[1]

    def plain(self, distinct: Tensor, index: Tensor, sizes: list[int], state: State) -> tuple[Tensor, State]:
        """The reference, one step at a time; gradients flow through it."""
        outputs, hiddens, cells = [], [], []
        for direction, layers in enumerate(self.stacks()):
            inputs = distinct.index_select(0, index[direction])
            rows, hs, cs = [], [], []
            for level, layer in enumerate(layers):
                inputs = F.dropout(inputs, self.dropout, self.training)
                out, h, c = layer(inputs, sizes, state.hidden[direction, level], state.cell[direction, level])
                inputs = out + inputs if self.config.residual and level > 0 else out
                rows.append(inputs)
                hs.append(h)
                cs.append(c)
            outputs.append(torch.stack(rows))
            hiddens.append(torch.stack(hs))
            cells.append(torch.stack(cs))
        return torch.stack(outputs, dim=1), State(torch.stack(hiddens), torch.stack(cells))
