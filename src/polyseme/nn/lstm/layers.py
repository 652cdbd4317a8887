"""The layers of ELMo's LSTMs, one time step after another in plain PyTorch: with projection, clipping and gradients.

`torch.nn.LSTM(proj_size=...)` does not fit: it does not clip, and without clipping the published models give other vectors
(Peters et al. 2018, "Deep contextualized word representations"; clipping as in Sak et al. 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.nn.config import LstmConfig

_plain_only = False


@contextmanager
def plain_only() -> Iterator[None]:
    """Within this block every LSTM takes the plain path: to compare results, or to debug."""
    global _plain_only
    before, _plain_only = _plain_only, True
    try:
        yield
    finally:
        _plain_only = before


def plain_wanted() -> bool:
    """Return whether `plain_only` is active."""
    return _plain_only


@dataclass(frozen=True)
class LstmState:
    """The state of the LSTMs: `hidden` (2, layers, rows, output) and `cell` (2, layers, rows, dim); 0 is forward."""

    hidden: Tensor
    cell: Tensor

    def rows(self, index: Tensor) -> LstmState:
        return LstmState(self.hidden.index_select(2, index), self.cell.index_select(2, index))

    def expand(self, rows: int) -> LstmState:
        """Repeat a state of one row."""
        return LstmState(self.hidden.expand(-1, -1, rows, -1), self.cell.expand(-1, -1, rows, -1))


class LstmLayer(nn.Module):
    """One layer of one direction; gates in PyTorch's order: input, forget, candidate, output."""

    def __init__(self, inputs: int, config: LstmConfig) -> None:
        super().__init__()
        self.input_weight = nn.Parameter(torch.empty(4 * config.cell_size, inputs))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * config.cell_size, config.output_size))
        self.bias = nn.Parameter(torch.zeros(4 * config.cell_size))
        self.projection_weight = (
            nn.Parameter(torch.empty(config.projection_size, config.cell_size)) if config.projection_size is not None else None
        )
        self.config = config
        self.cell_clip, self.projection_clip = config.cell_clip, config.projection_clip
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot-uniform matrices and zero biases; 1 for the forget gate, so that cells remember at first."""
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            if weight is not None:
                nn.init.xavier_uniform_(weight)
        dim = self.bias.shape[0] // 4
        with torch.no_grad():
            self.bias.zero_()[dim : 2 * dim] = 1.0

    def step(self, gates: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """One time step: input matmul (rows, 4 dim) and the state before it -> hidden and cell after it."""
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

    def forward(
        self, inputs: Tensor, sizes: list[int], hidden: Tensor, cell: Tensor, bptt: int | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Packed inputs (words, inputs) and the state of all rows -> outputs (words, output), end state of all rows.

        Gradients do not flow back over every `bptt`-th step; None: they flow through all.
        """
        gates = inputs @ self.input_weight.T + self.bias
        outputs, offset = [], 0
        for number, size in enumerate(sizes):
            before = hidden[:size], cell[:size]
            if bptt is not None and number and number % bptt == 0:
                before = before[0].detach(), before[1].detach()
            h, c = self.step(gates[offset : offset + size], *before)
            # finished rows keep their end state
            hidden, cell = torch.cat([h, hidden[size:]]), torch.cat([c, cell[size:]])
            outputs.append(h)
            offset += size
        return torch.cat(outputs), hidden, cell
