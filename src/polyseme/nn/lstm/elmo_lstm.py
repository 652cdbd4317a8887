"""ELMo's bidirectional LSTM: two stacks that never see each other, one for each reading direction.

`plain` is the reference that the faster paths must equal: `cpu` and `cuda` without gradients, `packed_texts` with them.
A direction reads packed words (see `packing`): the backward stack gets the same sentences from their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.config import LstmConfig, Precision
from polyseme.nn.lstm.cpu import CpuLstm
from polyseme.nn.lstm.cuda import CudaLstm
from polyseme.nn.lstm.layers import LstmLayer, LstmState, plain_wanted
from polyseme.nn.lstm.packed_texts import run_packed_texts
from polyseme.nn.stacked_bilstm import without_autocast
from polyseme.nn.weight_version import weight_version


class ElmoLstm(nn.Module):
    """Two independent stacks of LSTMs: one reads from the left, one from the right.

    Takes vectors of distinct words (distinct, inputs), the packed index of each direction into them (2, words), the sizes of
    the steps and a start state with rows in packed order. Returns the outputs of each layer, packed in the direction's own
    reading order, (layers, 2, words, output), and the end state.
    """

    def __init__(self, inputs: int, config: LstmConfig) -> None:
        super().__init__()
        self.config = config
        self.precision: Precision = "fp32"
        """Of the matmuls on the fast path; the plain path ignores it."""
        self.dropout = 0.0
        """On the input of every layer, in training only; the residual adds the input as dropped (Peters et al. 2018)."""
        self.bptt: int | None = None
        """Words through which gradients flow, in steps of the packed texts; None: all. The state goes on in any case."""
        self._prepared: tuple[Any, Callable[..., tuple[Tensor, LstmState]]] | None = None
        widths = [inputs] + [config.output_size] * (config.layers - 1)
        self.forward_layers = nn.ModuleList(LstmLayer(width, config) for width in widths)
        self.backward_layers = nn.ModuleList(LstmLayer(width, config) for width in widths)

    def __getstate__(self) -> dict[str, Any]:
        """Copies prepare their own weights."""
        return {**super().__getstate__(), "_prepared": None}

    def stacks(self) -> list[list[LstmLayer]]:
        """Return the layers, forward direction first."""
        return [list(self.forward_layers), list(self.backward_layers)]  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> LstmState:
        weight = self.stacks()[0][0].bias
        shape = (2, self.config.layers, rows)
        return LstmState(weight.new_zeros(*shape, self.config.output_size), weight.new_zeros(*shape, self.config.cell_size))

    def forward(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        return self._path(distinct)(distinct, index, sizes, state)

    def _path(self, distinct: Tensor) -> Callable[..., tuple[Tensor, LstmState]]:
        """Return the fast path for the current weights; the plain one for other number types and devices."""
        device = distinct.device.type
        if plain_wanted() or distinct.dtype != torch.float32 or device not in ("cpu", "cuda"):
            return self.plain
        if torch.is_grad_enabled() and (distinct.requires_grad or any(p.requires_grad for p in self.parameters())):
            return self.fused if device == "cuda" or not torch.is_autocast_enabled("cpu") else self.plain
        now = (weight_version(self), self.precision)
        if self._prepared is None or self._prepared[0] != now:
            fast = CpuLstm if device == "cpu" else CudaLstm
            self._prepared = (now, fast(self.stacks(), self.precision))
        return self._prepared[1]

    def fused(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        """With gradients, their way through time written out; matmuls in the type of autocast."""
        device = distinct.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else distinct.dtype
        # words are gathered in full precision: their gradients are summed there
        inputs = distinct.index_select(0, index.flatten()).to(kind).view(*index.shape, -1)
        with without_autocast(distinct.device):
            return run_packed_texts(self, inputs, sizes, state)

    def plain(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        """The reference: one step at a time, with gradients."""
        outputs, hiddens, cells = [], [], []
        for direction, layers in enumerate(self.stacks()):
            inputs = distinct.index_select(0, index[direction])
            rows, hs, cs = [], [], []
            for level, layer in enumerate(layers):
                inputs = F.dropout(inputs, self.dropout, self.training)
                out, h, c = layer(inputs, sizes, state.hidden[direction, level], state.cell[direction, level], self.bptt)
                inputs = out + inputs if self.config.residual and level > 0 else out
                rows.append(inputs)
                hs.append(h)
                cs.append(c)
            outputs.append(torch.stack(rows))
            hiddens.append(torch.stack(hs))
            cells.append(torch.stack(cs))
        return torch.stack(outputs, dim=1), LstmState(torch.stack(hiddens), torch.stack(cells))
