"""One step of the LSTM cell for both directions in plain PyTorch; `cell_triton` does the same as one kernel."""

from __future__ import annotations

import torch
from torch import Tensor


def cell_step(recurrent: Tensor, inputs: Tensor, index: Tensor, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Advance `cell` (2, all rows, dim) by one step for the first rows and write their outputs to `out` (2, rows, dim)."""
    rows = out.shape[1]
    gates = recurrent.float() + torch.stack([inputs[d].index_select(0, index[d, :rows]) for d in (0, 1)]).float()
    i, f, g, o = gates.chunk(4, dim=2)
    c = torch.sigmoid(f) * cell[:, :rows] + torch.sigmoid(i) * torch.tanh(g)
    c = c if clip is None else c.clamp(-clip, clip)
    cell[:, :rows] = c
    out.copy_(torch.sigmoid(o) * torch.tanh(c))
