"""A linear probe: one softmax layer over frozen vectors, so that what it finds was there and not learned on top.

Its inputs are standardised by the mean and deviation of the training vectors, for each layer and number by itself: layers
differ in size, and only so do the weights of a mix compare. All numbers begin at zero; the problem of a single layer is
convex, so that the seed (the order of the batches) hardly matters. There is no early stopping and hence no dev set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.base.config import Config, ConfigError
from polyseme.base.progress import progress
from polyseme.nn.mix import Mix

_SCORED = 16384  # vectors classified at a time


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Config):
    """How a probe is trained."""

    epochs: int = 10
    """Passes over the training vectors."""
    min_steps: int = 500
    """Little data is passed over more often, for at least so many steps."""
    batch_size: int = 512
    """Vectors of a batch_size."""
    learning_rate: float = 5e-3
    """The learning learning_rate at the first step; it falls to zero on a straight line."""
    mix_learning_rate: float = 2e-2
    """The same for the weights of the mix, which are few and have far to go."""
    weight_decay: float = 1e-2
    """Weight weight_decay of the softmax layer."""
    seed: int = 0
    """Decides the order of the batches."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ConfigError(f"epochs is {self.epochs} and batch_size {self.batch_size}; both must be at least 1")


class LinearProbe(nn.Module):
    """Vectors of one or several layers, (layers, spans, dim), into scores of classes, (spans, classes)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, deviation: Tensor, classes: int) -> None:
        super().__init__()
        layers, dim = mean.shape
        self.register_buffer("mean", mean.unsqueeze(1))  # (layers, 1, dim)
        self.register_buffer("scale", 1 / deviation.clamp(min=1e-6).unsqueeze(1))
        self.mix = Mix(layers) if layers > 1 else None
        self.output = nn.Linear(dim, classes)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        inputs = (vectors.float() - self.mean) * self.scale
        if self.mix is None:
            return self.output(inputs[0])
        mask = torch.ones(inputs.shape[1], 1, dtype=torch.bool, device=inputs.device)
        return self.output(self.mix(inputs.unsqueeze(2), mask).squeeze(1))

    @torch.inference_mode()
    def predict(self, vectors: NDArray[np.floating]) -> NDArray[np.int64]:
        """The likeliest class of each position, (spans,)."""
        stack, device = torch.from_numpy(vectors), self.mean.device
        blocks = range(0, stack.shape[1], _SCORED)
        found = [self(stack[:, begin : begin + _SCORED].to(device)).argmax(1).cpu() for begin in blocks]
        return torch.cat(found).numpy()


def fit_linear_probe(
    vectors: NDArray[np.floating],
    labels: NDArray[np.int64],
    classes: int,
    config: ProbeConfig,
    *,
    device: torch.device | str = "cpu",
    title: str = "probe",
) -> LinearProbe:
    """Train a probe on vectors (layers, spans, dim) and the class of each position, (spans,)."""
    stack, targets = torch.from_numpy(vectors), torch.from_numpy(labels)
    probe = LinearProbe(*_moments(stack), classes).to(device)
    groups = [{"params": probe.output.parameters(), "lr": config.learning_rate, "weight_decay": config.weight_decay}]
    if probe.mix is not None:
        groups.append({"params": probe.mix.parameters(), "lr": config.mix_learning_rate, "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups)
    order = torch.Generator().manual_seed(config.seed)
    in_epoch = -(-len(targets) // config.batch_size)
    epochs = max(config.epochs, -(-config.min_steps // in_epoch))
    steps = epochs * in_epoch
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    with progress(title, steps, "steps") as advance:
        for _ in range(epochs):
            for rows in torch.randperm(len(targets), generator=order).split(config.batch_size):
                scores = probe(stack.index_select(1, rows).to(device))
                loss = nn.functional.cross_entropy(scores, targets[rows].to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                advance(1)
    return probe.eval()


def _moments(stack: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and deviation over the spans, each (layers, dim), summed in double a block at a time."""
    layers, count, dim = stack.shape
    mean, spread = (torch.zeros(layers, dim, dtype=torch.float64) for _ in range(2))
    for block in stack.split(_SCORED, dim=1):
        mean += block.double().sum(1) / count
    for block in stack.split(_SCORED, dim=1):
        spread += (block.double() - mean.unsqueeze(1)).square().sum(1) / count
    return mean.float(), spread.sqrt().float()
