"""One step of the LSTM cell for both directions in plain PyTorch: what `cell_triton` does as one kernel."""

from __future__ import annotations

import torch
from torch import Tensor


def cell_step(recurrent: Tensor, products: Tensor, index: Tensor, cell: Tensor, out: Tensor, clip: float | None) -> None:
    """Brings `cell` (2, all rows, dim) one step on for the first rows and writes their outputs to `out` (2, rows, dim)."""
    rows = out.shape[1]
    gates = recurrent.float() + torch.stack([products[d].index_select(0, index[d, :rows]) for d in (0, 1)]).float()
    i, f, g, o = gates.chunk(4, dim=2)
    c = torch.sigmoid(f) * cell[:, :rows] + torch.sigmoid(i) * torch.tanh(g)
    c = c if clip is None else c.clamp(-clip, clip)
    cell[:, :rows] = c
    out.copy_(torch.sigmoid(o) * torch.tanh(c))
