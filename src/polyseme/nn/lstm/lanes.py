"""The two LSTM stacks over lanes, for training: every step has the same rows, and the state is carried from batch to batch.

Lanes (`polyseme.text.batching.lanes`) have one fixed shape, so that the time steps need no bookkeeping, both directions go
through one batched product, and a GPU can replay a recorded graph. Where a sentence begins, a lane's state is put back to the
start state. Two equal ways through a layer stand here: `plain_layer`, one direction and one step at a time with PyTorch's own
gradients, and `fused_layer`, with back-propagation through time written out (`through_time`).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.nn.lstm import plain as lstm
from polyseme.nn.lstm.plain import BiLstm, LstmLayer, State
from polyseme.nn.lstm.through_time import ThroughTime

Layer = Callable[[tuple[LstmLayer, LstmLayer], Tensor, Tensor | None, State, State], tuple[Tensor, Tensor, Tensor]]


def plain_layer(
    pair: tuple[LstmLayer, LstmLayer], inputs: Tensor, begins: Tensor | None, start: State, state: State
) -> tuple[Tensor, Tensor, Tensor]:
    """The reference: inputs (2, steps, lanes, inputs) -> outputs (2, steps, lanes, output), end state of both directions.

    `start` and `state` are of this layer alone: (2, lanes or 1, output) and (2, lanes or 1, dim).
    """
    outputs, hiddens, cells = [], [], []
    for direction, layer in enumerate(pair):
        hidden, cell = state.hidden[direction], state.cell[direction]
        products = inputs[direction] @ layer.input_weight.T + layer.bias
        rows = []
        for step in range(inputs.shape[1]):
            if begins is not None:
                anew = begins[step][:, None]
                hidden = torch.where(anew, start.hidden[direction], hidden)
                cell = torch.where(anew, start.cell[direction], cell)
            hidden, cell = layer.step(products[step], hidden, cell)
            rows.append(hidden)
        outputs.append(torch.stack(rows))
        hiddens.append(hidden)
        cells.append(cell)
    return torch.stack(outputs), torch.stack(hiddens), torch.stack(cells)


def fused_layer(
    pair: tuple[LstmLayer, LstmLayer], inputs: Tensor, begins: Tensor | None, start: State, state: State
) -> tuple[Tensor, Tensor, Tensor]:
    """The same numbers, both directions at once; products in the type of `inputs`."""

    def both(name: str) -> Tensor | None:
        weights = [getattr(layer, name) for layer in pair]
        return None if weights[0] is None else torch.stack(weights).to(inputs.dtype)

    found: tuple[Tensor, Tensor, Tensor] = ThroughTime.apply(
        inputs,
        both("input_weight"),
        both("recurrent_weight"),
        both("bias"),
        both("projection_weight"),
        state.hidden.to(inputs.dtype),
        state.cell.float(),
        start.hidden.to(inputs.dtype),
        start.cell.float(),
        begins,
        (pair[0].cell_clip, pair[0].projection_clip),
    )
    return found


def read_lanes(
    stacks: BiLstm, inputs: Tensor, begins: Tensor | None, start: State, carried: State, *, layer: Layer | None = None
) -> tuple[Tensor, State]:
    """Word vectors (2, steps, lanes, dim) -> the top layer's outputs (2, steps, lanes, output), and the state to carry on.

    `begins` (steps, lanes) says where a sentence begins and the state is put back to `start` (one row); None: nowhere.
    No gradient flows into `carried`, nor out of the state that is given back: back-propagation is truncated there.
    """
    layer = layer or (plain_layer if lstm.plain_wanted() else fused_layer)
    hiddens, cells = [], []
    for level, pair in enumerate(zip(stacks.forward_layers, stacks.backward_layers, strict=True)):
        inputs = F.dropout(inputs, stacks.dropout, stacks.training)
        first = State(start.hidden[:, level], start.cell[:, level])
        state = State(carried.hidden[:, level].detach(), carried.cell[:, level].detach())
        outputs, hidden, cell = layer(pair, inputs, begins, first, state)  # type: ignore[arg-type]
        inputs = outputs + inputs if stacks.config.residual and level > 0 else outputs
        hiddens.append(hidden.detach().float())
        cells.append(cell.detach().float())
    return inputs, State(torch.stack(hiddens, 1), torch.stack(cells, 1))
