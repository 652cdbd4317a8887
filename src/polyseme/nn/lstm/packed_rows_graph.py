"""The LSTMs over packed rows as a CUDA graph, which replaces about a hundred kernel launches per batch by two.

A graph needs fixed shapes, which packed rows have. It is captured at the first batch and replayed for every later one.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyseme.nn.cuda_graph import can_replay, capture
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState, plain_wanted
from polyseme.nn.lstm.packed_rows import run_packed_rows


class PackedRowsGraph:
    """`run_packed_rows` for one `ElmoLstm`, one shape of batch and one precision."""

    def __init__(self, stacks: ElmoLstm, inputs: Tensor, begins: Tensor | None, start: LstmState, carried: LstmState) -> None:
        reader = _Reader(stacks, begins is not None)
        self.fits = _key(stacks, inputs, begins)
        with torch.autocast("cuda", enabled=False):
            self._replay = capture(reader, _flat(inputs, begins, start, carried))

    def __call__(self, inputs: Tensor, begins: Tensor | None, start: LstmState, carried: LstmState) -> tuple[Tensor, LstmState]:
        """As `run_packed_rows`; results are valid until the next call."""
        top, hidden, cell = self._replay(*_flat(inputs, begins, start, carried))
        return top, LstmState(hidden, cell)


class GraphedPackedRows:
    """`run_packed_rows` for one `ElmoLstm`; on a GPU through a graph, captured again when shapes or weight addresses change."""

    def __init__(self, stacks: ElmoLstm) -> None:
        self._stacks = stacks
        self._graph: PackedRowsGraph | None = None

    def __call__(self, inputs: Tensor, begins: Tensor | None, start: LstmState, carried: LstmState) -> tuple[Tensor, LstmState]:
        stacks = self._stacks
        if not inputs.is_cuda or plain_wanted() or not can_replay(stacks):
            return run_packed_rows(stacks, inputs, begins, start, carried)
        if self._graph is None or self._graph.fits != _key(stacks, inputs, begins):
            self._graph = None  # free its memory first
            self._graph = PackedRowsGraph(stacks, inputs, begins, start, carried)
        return self._graph(inputs, begins, start, carried)


class _Reader(nn.Module):
    """Tensors in, tensors out, as a graph needs."""

    def __init__(self, stacks: ElmoLstm, sentences: bool) -> None:
        super().__init__()
        self.stacks, self._sentences = stacks, sentences

    def forward(self, inputs: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        begins = rest[0] if self._sentences else None
        a, b, c, d = rest[-4:]
        top, end = run_packed_rows(self.stacks, inputs, begins, LstmState(a, b), LstmState(c, d))
        return top, end.hidden, end.cell


def _flat(inputs: Tensor, begins: Tensor | None, start: LstmState, carried: LstmState) -> tuple[Tensor, ...]:
    states = (start.hidden, start.cell, carried.hidden.detach(), carried.cell.detach())
    return (inputs, *states) if begins is None else (inputs, begins, *states)


def _key(stacks: ElmoLstm, inputs: Tensor, begins: Tensor | None) -> tuple[object, ...]:
    addresses = tuple((weight.data_ptr(), weight.requires_grad) for weight in stacks.parameters())
    return (inputs.shape, inputs.dtype, inputs.requires_grad, begins is None, stacks.dropout, addresses)
