"""Muon (Jordan et al. 2024): the momentum of a matrix, made orthogonal, is its update. The other weights get AdamW.

Orthogonal means that all singular values of the update are about one, so that rare directions move as far as frequent ones.
A fixed polynomial applied five times (Newton-Schulz) comes close to it with matrix products alone. The update is scaled to the
size of an AdamW step (Liu et al. 2025), so that one learning rate serves both kinds of weights.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from polyseme.nn.output.full import OutputLayer
from polyseme.nn.weight_version import count_fused_steps

MOMENTUM = 0.95
_STEPS = 5
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ADAMW_SIZE = 0.2
"""Root mean square of the elements of a typical AdamW step, divided by the learning rate."""


class Muon(torch.optim.AdamW):
    """AdamW, except for the groups with `orthogonal=True`, whose weights must be matrices."""

    def __init__(self, groups: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(groups, **options)
        count_fused_steps(self)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["orthogonal"]]
        super().step()
        self.param_groups = groups
        for group in groups:
            if group["orthogonal"] and group["lr"]:
                self._step_matrices(group)

    def _step_matrices(self, group: dict[str, Any]) -> None:
        for weight in group["params"]:
            if weight.grad is None:
                continue
            state = self.state[weight]
            if not state:
                state["momentum"] = torch.zeros_like(weight)
                state["step"] = torch.zeros(())  # AdamW looks for it in every state that is restored
            state["step"] += 1
            momentum = state["momentum"].lerp_(weight.grad, 1.0 - MOMENTUM)
            update = orthogonalize(torch.lerp(weight.grad, momentum, MOMENTUM))  # Nesterov's
            size = _ADAMW_SIZE * max(update.shape) ** 0.5
            weight.mul_(1.0 - group["lr"] * group["weight_decay"])
            weight.add_(update.to(weight.dtype), alpha=-group["lr"] * size)


def orthogonalize(matrix: Tensor) -> Tensor:
    """Return nearly U V', where U S V' is the matrix: singular values between 0.7 and 1.2 (bf16 on a GPU)."""
    tall = matrix.shape[0] > matrix.shape[1]
    work = (matrix.T if tall else matrix).to(torch.bfloat16 if matrix.is_cuda else torch.float32)
    work = work / (work.norm() + 1e-7)
    a, b, c = _COEFFICIENTS
    for _ in range(_STEPS):
        gram = work @ work.T
        work = a * work + (b * gram + c * gram @ gram) @ work
    return work.T if tall else work


def hidden_matrices(learner: nn.Module) -> set[str]:
    """Return the names of the matrices that map vectors to vectors: no table of words or characters, and no output layer."""
    tables = {
        f"{name}.{own}" if name else own
        for name, module in learner.named_modules()
        if isinstance(module, nn.Embedding | OutputLayer)
        for own, _ in module.named_parameters(recurse=False)
    }
    return {
        name
        for name, weight in learner.named_parameters()
        if weight.dim() == 2 and name not in tables and not name.endswith("embedding")
    }
