"""Whether weights have changed since something was derived from them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

WeightVersion = tuple[tuple[int, int, float], ...]
_PROBES = 16  # numbers of each parameter that are looked at


def weight_version(module: nn.Module) -> WeightVersion:
    """Changes whenever a parameter is replaced, moved or written in place (an optimizer's step, a new state dict).

    PyTorch counts writes, but not those through `.data` or in inference mode, so a few numbers are looked at as well; on a GPU,
    where looking would stop the stream, the count alone must do. Whoever writes single numbers through `.data` there
    calls `Elmo.refresh`.
    """
    return tuple((p.data_ptr(), 0 if p.is_inference() else p._version, _probe(p)) for p in module.parameters())


def _count_writes(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Counts what fused optimizers write, for PyTorch does not."""
    increment_version(
        [
            weight
            for group in optimizer.param_groups
            if group.get("fused")
            for weight in group["params"]
            if not weight.is_inference()
        ]
    )


register_optimizer_step_post_hook(_count_writes)


def _probe(parameter: Tensor) -> float:
    if parameter.is_cuda or parameter.numel() == 0:
        return 0.0
    flat = parameter.detach().view(-1) if parameter.is_contiguous() else parameter.detach().reshape(-1)
    return float(flat[:: max(1, len(flat) // _PROBES)].sum(dtype=torch.float64))
