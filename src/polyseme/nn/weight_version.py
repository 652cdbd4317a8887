"""The version of a module's weights: whether they have changed since something was derived from them.

PyTorch counts writes to a tensor (`_version`), but it misses two kinds.

- Steps of fused optimizers. No optimizer changes a weight without a gradient, so gradients are counted as well. While a weight
  has a gradient, a step may come at any time, so all its numbers are summed.
- Writes through `.data` and in inference mode. On a CPU a few numbers of each weight are compared. On a GPU that would wait for
  all queued work: call `Elmo.refresh` after such a write.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import increment_version
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

WeightVersion = tuple[tuple[int, int, int, float], ...]
_SAMPLES = 16  # numbers of each parameter that are looked at
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_gradients: WeakTensorKeyDictionary = WeakTensorKeyDictionary()
"""How many gradients have reached a parameter, of those whose version was asked for."""


def weight_version(module: nn.Module) -> WeightVersion:
    """Return a value that differs whenever a parameter was replaced, moved or written (an optimizer's step, a state dict)."""
    return tuple(
        (each.data_ptr(), 0 if each.is_inference() else each._version, _gradients_of(each), _checksum(each))
        for each in module.parameters()
    )


def count_fused_steps(optimizer: Optimizer) -> None:
    """Let PyTorch count what this fused optimizer writes: for weights that are frozen before and after training."""

    def count(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        increment_version([weight for group in optimizer.param_groups if group.get("fused") for weight in group["params"]])

    optimizer.register_step_post_hook(count)


def _gradients_of(parameter: Tensor) -> int:
    if parameter not in _gradients:
        if not parameter.requires_grad or not parameter.is_leaf:
            return -1  # frozen: it differs from the same weight unfrozen
        _gradients[parameter] = 0
        parameter.register_post_accumulate_grad_hook(_count)
    return int(_gradients[parameter])


def _count(parameter: Tensor) -> None:
    _gradients[parameter] = _gradients.get(parameter, 0) + 1


def _checksum(parameter: Tensor) -> float:
    if parameter.numel() == 0 or (parameter.grad is None and parameter.is_cuda):
        return 0.0
    flat = parameter.detach().reshape(-1)
    if parameter.grad is not None:
        return float(flat.view(_INTEGERS[flat.element_size()]).sum(dtype=torch.int64))
    return float(flat[:: max(1, len(flat) // _SAMPLES)].sum(dtype=torch.float64))
