"""Optimizers and the schedule of the learning rate.

AdamW is the default; Adagrad is the paper's (rate 0.2, accumulators from 1.0, no epsilon, as TensorFlow computes it).
The schedule is a pure function of how much of the run is done, in whatever unit the budget has, against a scheduler object
with a state of its own: nothing to save, and nothing to drift when a run is resumed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from polyseme.base.config import Config, ConfigError
from polyseme.training.base import LrMultiplier

SLANTED_RATIO = 32.0
"""How many times the highest rate of a slanted triangle is its lowest."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimConfig(Config):
    """How the weights move."""

    optimizer: Literal["adamw", "adagrad"] = "adamw"
    """adamw, or the paper's adagrad (with learning_rate 0.2, decay constant)."""
    learning_rate: float = 1e-3
    """The highest rate of the run."""
    weight_decay: float = 0.01
    """AdamW's decay of the weights towards zero; biases and other one-dimensional tensors are left alone."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's two memories."""
    epsilon: float = 1e-8
    """AdamW's guard against division by zero."""
    initial_accumulator: float = 1.0
    """Where Adagrad's sums of squares begin; above zero, since there is no epsilon."""
    warmup: float = 0.02
    """The share of the run in which the rate climbs from zero."""
    decay: Literal["linear", "cosine", "constant", "slanted"] = "linear"
    """How the rate falls to zero after the warm-up; slanted: both lines go from and to a 32nd of the highest rate, as in
    ULMFiT, where the warm-up is a tenth of the run."""
    clip_norm: float | None = 1.0
    """The longest gradient (norm over all weights); None clips nothing."""
    skip_norm: float | None = None
    """A gradient longer than this, or not finite, counts as zero (momentum and decay go on); None follows every one.

    Back-propagation through time explodes now and then at high rates. Shortened, such a gradient still points anywhere, and
    Adam, which looks at directions more than at lengths, would follow it far enough to ruin the model."""

    def __post_init__(self) -> None:
        problems = []
        if not self.learning_rate > 0:
            problems.append(f"learning_rate is {self.learning_rate}; it must be above 0")
        if not 0 <= self.warmup < 1:
            problems.append(f"warmup is {self.warmup}; it is a share of the run, from 0 to below 1")
        if not 0 <= self.weight_decay < math.inf:
            problems.append(f"weight_decay is {self.weight_decay}; it must be 0 or more")
        if not all(0 <= beta < 1 for beta in self.betas):
            problems.append(f"betas are {self.betas}; each is from 0 to below 1")
        if not 0 <= self.epsilon < math.inf:
            problems.append(f"epsilon is {self.epsilon}; it must be 0 or more")
        if self.decay == "slanted" and not self.warmup:
            problems.append(
                "decay is 'slanted', a climb and a fall, but warmup is 0; give the share that climbs (published: 0.1)"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            problems.append(f"clip_norm is {self.clip_norm}; it must be above 0, or null to clip nothing")
        if self.skip_norm is not None and not self.skip_norm > 0:
            problems.append(f"skip_norm is {self.skip_norm}; it must be above 0, or null to skip nothing")
        if self.optimizer == "adagrad" and not self.initial_accumulator > 0:
            problems.append(f"initial_accumulator is {self.initial_accumulator}; Adagrad divides by its root: above 0")
        if problems:
            raise ConfigError("; ".join(problems))


def learning_rate(config: OptimConfig, done: int, total: int) -> float:
    """The rate of the step that begins when `done` of `total` steps (or words) are done.

    The climb ends at `warmup * total`, the fall at `total`; the first step already moves.

    >>> config = OptimConfig(learning_rate=1.0, warmup=0.5)
    >>> [learning_rate(config, step, 6) for step in (0, 1, 2, 3, 4, 5)]
    [0.25, 0.5, 0.75, 1.0, 0.6666666666666666, 0.3333333333333333]
    """
    climb = config.warmup * total
    if config.decay == "slanted":  # Howard and Ruder 2018, equation 3
        share = done / climb if done < climb else max(0.0, (total - done) / (total - climb))
        return config.learning_rate * (1.0 + share * (SLANTED_RATIO - 1.0)) / SLANTED_RATIO
    if done < climb:
        return config.learning_rate * (done + 1) / (climb + 1)
    left = max(0.0, (total - done) / (total - climb))
    if config.decay == "linear":
        return config.learning_rate * left
    if config.decay == "cosine":
        return config.learning_rate * 0.5 * (1.0 + math.cos(math.pi * (1.0 - left)))
    return config.learning_rate


def build_optimizer(
    config: OptimConfig, learner: nn.Module, lr_multipliers: Sequence[LrMultiplier] = ()
) -> torch.optim.Optimizer:
    """The optimizer over the learner's trainable weights, in a decayed and an undecayed group for each multiplier."""
    groups = _groups(config, learner, lr_multipliers)
    if config.optimizer == "adagrad":
        start = config.initial_accumulator
        return torch.optim.Adagrad(groups, lr=config.learning_rate, initial_accumulator_value=start, eps=0.0)
    fused = all(weight.device.type in ("cpu", "cuda") for group in groups for weight in group["params"])
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon, fused=fused)


def _groups(config: OptimConfig, learner: nn.Module, given: Sequence[LrMultiplier]) -> list[dict[str, Any]]:
    decay = config.weight_decay if config.optimizer == "adamw" else 0.0
    usual, lr_multipliers = LrMultiplier(""), sorted(given, key=lambda rule: len(rule.prefix))
    found: dict[tuple[LrMultiplier, bool], dict[str, Any]] = {}
    for name, weight in learner.named_parameters():
        if not weight.requires_grad:
            continue
        rule = next((rule for rule in reversed(lr_multipliers) if name.startswith(rule.prefix)), usual)
        matrix = weight.dim() > 1
        new = {
            "params": [],
            "names": [],
            "weight_decay": decay if matrix else 0.0,
            "lr_multiplier": rule.multiplier,
            "start": rule.start,
        }
        group = found.setdefault((rule, matrix), new)
        group["params"].append(weight)
        group["names"].append(name)
    order = [usual, *lr_multipliers]
    return [found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), not key[1]))]


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float, done: float = 0.0) -> None:
    """The rate of the next step, for each group times its multiplier, when this share of the run is done."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["lr_multiplier"] if done >= group["start"] else 0.0


def clip_gradients(config: OptimConfig, optimizer: torch.optim.Optimizer) -> Tensor:
    """Shorten a gradient that is longer than `clip_norm`, and make one that is longer than `skip_norm` zero.

    Weights that stay as they are (their rate is zero) do not count, and lose their gradients: the optimizer would remember
    them, and zero times what is no number is no number. Gives the norm from before, without waiting for the device.
    """
    moving = [group for group in optimizer.param_groups if group["lr"]] or optimizer.param_groups
    if len(moving) < len(optimizer.param_groups):
        for weight in (weight for group in optimizer.param_groups if not group["lr"] for weight in group["params"]):
            weight.grad = None
    weights = [weight for group in moving for weight in group["params"]]
    norm = nn.utils.clip_grad_norm_(weights, math.inf if config.clip_norm is None else config.clip_norm)
    if config.skip_norm is not None:
        skipped = ~(norm <= config.skip_norm)  # so written, it is true of what is no number, too
        for weight in weights:
            if weight.grad is not None:
                weight.grad.masked_fill_(skipped, 0.0)
    return norm


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's memory under the names of the weights: `lstm.weight/exp_avg`."""
    return {
        f"{name}/{key}": value
        for group in optimizer.param_groups
        for name, weight in zip(group["names"], group["params"], strict=True)
        for key, value in optimizer.state.get(weight, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave."""
    names = [name for group in optimizer.param_groups for name in group["names"]]
    number = {name: i for i, name in enumerate(names)}  # state_dict counts the weights through all groups
    state: dict[int, dict[str, Tensor]] = {}
    for path, value in tensors.items():
        name, _, key = path.rpartition("/")
        state.setdefault(number[name], {})[key] = value.clone()
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
