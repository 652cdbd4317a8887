"""The two LSTM stacks over packed rows, for training: every step has the same rows, and the state carries over between batches.

Packed rows (`polyseme.text.batching`) have one fixed shape. So time steps need no bookkeeping, one batched matmul serves both
directions, and a GPU can replay a recorded graph. Where a sentence begins, the row's state is reset to the start state. A layer
can run in two ways with equal results: `plain_layer`, one direction and one step at a time with autograd, and `fused_layer`,
whose backpropagation through time is written out (`bptt`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.nn.lstm.bptt import Bptt
from polyseme.nn.lstm.layers import LstmLayer, LstmState, plain_wanted

if TYPE_CHECKING:
    from polyseme.nn.lstm.elmo_lstm import ElmoLstm

Layer = Callable[[tuple[LstmLayer, LstmLayer], Tensor, Tensor | None, LstmState, LstmState], tuple[Tensor, Tensor, Tensor]]


def plain_layer(
    pair: tuple[LstmLayer, LstmLayer], inputs: Tensor, begins: Tensor | None, start: LstmState, state: LstmState
) -> tuple[Tensor, Tensor, Tensor]:
    """The reference: inputs (2, steps, rows, inputs) -> outputs (2, steps, rows, output), end state of both directions.

    `start` and `state` belong to this layer: (2, rows or 1, output) and (2, rows or 1, dim).
    """
    outputs, hiddens, cells = [], [], []
    for direction, layer in enumerate(pair):
        hidden, cell = state.hidden[direction], state.cell[direction]
        gates = inputs[direction] @ layer.input_weight.T + layer.bias
        rows = []
        for step in range(inputs.shape[1]):
            if begins is not None:
                restart = begins[step][:, None]
                hidden = torch.where(restart, start.hidden[direction], hidden)
                cell = torch.where(restart, start.cell[direction], cell)
            hidden, cell = layer.step(gates[step], hidden, cell)
            rows.append(hidden)
        outputs.append(torch.stack(rows))
        hiddens.append(hidden)
        cells.append(cell)
    return torch.stack(outputs), torch.stack(hiddens), torch.stack(cells)


def fused_layer(
    pair: tuple[LstmLayer, LstmLayer], inputs: Tensor, begins: Tensor | None, start: LstmState, state: LstmState
) -> tuple[Tensor, Tensor, Tensor]:
    """The same for both directions at once; matmuls in the type of `inputs`."""
    outputs, _, cell = Bptt.apply(
        begins,
        (pair[0].cell_clip, pair[0].projection_clip),
        inputs,
        *both_directions(pair, inputs.dtype),
        state.hidden.to(inputs.dtype),
        state.cell.float(),
        start.hidden.to(inputs.dtype),
        start.cell.float(),
    )
    return outputs, outputs[:, -1].clone(), cell


def both_directions(pair: tuple[LstmLayer, LstmLayer], kind: torch.dtype) -> list[Tensor | None]:
    """The weights of a layer as `Bptt` takes them: input, recurrent, bias, projection (None: the layer has none)."""

    def stacked(name: str) -> Tensor | None:
        weights = [getattr(layer, name) for layer in pair]
        return None if weights[0] is None else torch.stack(weights).to(kind)

    return [stacked(name) for name in ("input_weight", "recurrent_weight", "bias", "projection_weight")]


def run_packed_rows(
    stacks: ElmoLstm, inputs: Tensor, begins: Tensor | None, start: LstmState, carried: LstmState, *, layer: Layer | None = None
) -> tuple[Tensor, LstmState]:
    """Word vectors (2, steps, rows, dim) -> the top layer's outputs (2, steps, rows, output), and the state to carry over.

    `begins` (steps, rows): where a sentence begins and the state is reset to `start` (one row); None: nowhere. No gradient
    flows through `carried` and the returned state: BPTT is truncated there.
    """
    layer = layer or (plain_layer if plain_wanted() else fused_layer)
    hiddens, cells = [], []
    for level, pair in enumerate(zip(stacks.forward_layers, stacks.backward_layers, strict=True)):
        inputs = F.dropout(inputs, stacks.dropout, stacks.training)
        first = LstmState(start.hidden[:, level], start.cell[:, level])
        state = LstmState(carried.hidden[:, level].detach(), carried.cell[:, level].detach())
        outputs, hidden, cell = layer(pair, inputs, begins, first, state)  # type: ignore[arg-type]
        inputs = outputs + inputs if stacks.config.residual and level > 0 else outputs
        hiddens.append(hidden.detach().float())
        cells.append(cell.detach().float())
    return inputs, LstmState(torch.stack(hiddens, 1), torch.stack(cells, 1))
