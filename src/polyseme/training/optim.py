"""Optimizers and the learning-rate schedule.

AdamW is the default; Muon (see `muon.py`) learns more from each step of pre-training; Adagrad is the ELMo paper's (learning
rate 0.2, accumulators from 1.0, no epsilon, as TensorFlow computes it); ASGD (see `asgd.py`) is the AWD-LSTM's. The schedule is
a pure function of how much of the run is done, in the unit of its budget, and not a scheduler object: there is no state to
save, and nothing drifts when a run is resumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.nn.weight_version import count_fused_steps
from polyseme.training.asgd import AveragedSgd
from polyseme.training.base import LrMultiplier
from polyseme.training.muon import Muon, hidden_matrices
from polyseme.training.optim_config import OptimConfig

SLANTED_RATIO = 32.0
"""Peak learning rate of a slanted triangle, divided by its lowest."""


def scheduled_learning_rate(config: OptimConfig, done: int, total: int) -> float:
    """Return the learning rate of the step that begins when `done` of `total` steps (or words) are done.

    Warm-up ends at `warmup * total`, the decay at `total`; the rate of the first step is above zero.

    >>> config = OptimConfig(learning_rate=1.0, warmup=0.5)
    >>> [scheduled_learning_rate(config, step, 6) for step in (0, 1, 2, 3, 4, 5)]
    [0.25, 0.5, 0.75, 1.0, 0.6666666666666666, 0.3333333333333333]
    """
    warmup = config.warmup * total
    if config.decay == "slanted":  # Howard and Ruder 2018, equation 3
        height = done / warmup if done < warmup else max(0.0, (total - done) / (total - warmup))
        return config.learning_rate * (1.0 + height * (SLANTED_RATIO - 1.0)) / SLANTED_RATIO
    if done < warmup:
        return config.learning_rate * (done + 1) / (warmup + 1)
    left = max(0.0, (total - done) / (total - warmup))
    if config.decay == "linear":
        return config.learning_rate * left
    if config.decay == "cosine":
        return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))
    return config.learning_rate


def build_optimizer(
    config: OptimConfig, learner: nn.Module, lr_multipliers: Sequence[LrMultiplier] = ()
) -> torch.optim.Optimizer:
    """Build the optimizer over the trainable weights: groups with and without weight decay for each multiplier."""
    groups = _groups(config, learner, lr_multipliers)
    if config.optimizer == "adagrad":
        start = config.initial_accumulator
        return torch.optim.Adagrad(groups, lr=config.learning_rate, initial_accumulator_value=start, eps=0.0)
    if config.optimizer == "asgd":
        return AveragedSgd(groups, lr=config.learning_rate)
    fused = all(weight.device.type in ("cpu", "cuda") for group in groups for weight in group["params"])
    if config.optimizer == "muon":
        return Muon(groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon, fused=fused)
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon, fused=fused)
    count_fused_steps(optimizer)
    return optimizer


def _groups(config: OptimConfig, learner: nn.Module, given: Sequence[LrMultiplier]) -> list[dict[str, Any]]:
    decay = config.weight_decay if config.optimizer != "adagrad" else 0.0
    default, rules = LrMultiplier(""), sorted(given, key=lambda rule: len(rule.prefix))
    matrices = hidden_matrices(learner) if config.optimizer == "muon" else set()
    groups: dict[tuple[LrMultiplier, bool, bool], dict[str, Any]] = {}
    for name, weight in learner.named_parameters():
        if not weight.requires_grad:
            continue
        rule = next((rule for rule in reversed(rules) if name.startswith(rule.prefix)), default)
        is_matrix = weight.dim() > 1
        orthogonal = name in matrices
        rate = {"weight_decay": decay if is_matrix else 0.0, "lr_multiplier": rule.multiplier, "start": rule.start}
        group = groups.setdefault((rule, is_matrix, orthogonal), {"params": [], "names": [], "orthogonal": orthogonal, **rate})
        group["params"].append(weight)
        group["names"].append(name)
    order = [default, *rules]
    return [groups[key] for key in sorted(groups, key=lambda key: (order.index(key[0]), not key[1], key[2]))]


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float, done: float = 0.0) -> None:
    """Set the learning rate of the next step, times each group's multiplier, when the fraction `done` of the run is done."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * group["lr_multiplier"] if done >= group["start"] else 0.0


def clip_gradients(config: OptimConfig, optimizer: torch.optim.Optimizer) -> Tensor:
    """Clip the gradient to `clip_norm`, and set one longer than `skip_norm` to zero; return the norm from before.

    Frozen weights (their learning rate is zero) do not count and lose their gradients: the optimizer would average them, and
    zero times NaN is NaN. Does not wait for the device.
    """
    trained = [group for group in optimizer.param_groups if group["lr"]] or optimizer.param_groups
    if len(trained) < len(optimizer.param_groups):
        for weight in (weight for group in optimizer.param_groups if not group["lr"] for weight in group["params"]):
            weight.grad = None
    weights = [weight for group in trained for weight in group["params"]]
    norm = nn.utils.clip_grad_norm_(weights, math.inf if config.clip_norm is None else config.clip_norm)
    if config.skip_norm is not None:
        skipped = ~(norm <= config.skip_norm)  # true of NaN, too
        for weight in weights:
            if weight.grad is not None:
                weight.grad.masked_fill_(skipped, 0.0)
    return norm


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the optimizer state under the names of the weights: `lstm.weight/exp_avg`."""
    return {
        f"{name}/{key}": value
        for group in optimizer.param_groups
        for name, weight in zip(group["names"], group["params"], strict=True)
        for key, value in optimizer.state.get(weight, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore what `optimizer_tensors` returned; weights that were frozen then start afresh, and frozen ones have no state."""
    names = [name for group in optimizer.param_groups for name in group["names"]]
    number = {name: i for i, name in enumerate(names)}  # state_dict numbers the weights over all groups
    state: dict[int, dict[str, Tensor]] = {}
    if isinstance(optimizer, torch.optim.Adagrad):  # alone has state before the first step
        state = {i: dict(values) for i, values in optimizer.state_dict()["state"].items()}
    for path, value in tensors.items():
        name, _, key = path.rpartition("/")
        if name in number:
            state.setdefault(number[name], {})[key] = value.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
