"""A linear probe: one softmax layer over frozen vectors, so that it finds only what the vectors contain.

Its inputs are standardized by the mean and standard deviation of the training vectors, per layer and dimension: layers differ
in scale, and only so are the weights of a mix comparable. All weights are initialized to zero; with a single layer the problem
is convex, so the seed (the order of the batches) hardly matters. There is no early stopping, hence no dev set.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.analysis.config import ProbeConfig
from polyseme.base.progress import progress
from polyseme.nn.mix import Mix

_SCORED = 16384  # vectors classified at a time


class LinearProbe(nn.Module):
    """Maps vectors of one or several layers, (layers, examples, dim), to class scores, (examples, classes)."""

    mean: Tensor
    scale: Tensor

    def __init__(self, mean: Tensor, std: Tensor, classes: int) -> None:
        super().__init__()
        layers, dim = mean.shape
        self.register_buffer("mean", mean.unsqueeze(1))  # (layers, 1, dim)
        self.register_buffer("scale", 1 / std.clamp(min=1e-6).unsqueeze(1))
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
        """Return the most probable class of each example, (examples,)."""
        stack, device = torch.from_numpy(vectors), self.mean.device
        blocks = range(0, stack.shape[1], _SCORED)
        classes = [self(stack[:, begin : begin + _SCORED].to(device)).argmax(1).cpu() for begin in blocks]
        return torch.cat(classes).numpy()


def fit_linear_probe(
    vectors: NDArray[np.floating],
    labels: NDArray[np.int64],
    classes: int,
    config: ProbeConfig,
    *,
    device: torch.device | str = "cpu",
    title: str = "probe",
) -> LinearProbe:
    """Train a probe on vectors (layers, examples, dim) and the class of each example, (examples,)."""
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
    """Return mean and standard deviation over the examples, each (layers, dim), summed in double a block at a time."""
    layers, count, dim = stack.shape
    mean, variance = (torch.zeros(layers, dim, dtype=torch.float64) for _ in range(2))
    for block in stack.split(_SCORED, dim=1):
        mean += block.double().sum(1) / count
    for block in stack.split(_SCORED, dim=1):
        variance += (block.double() - mean.unsqueeze(1)).square().sum(1) / count
    return mean.float(), variance.sqrt().float()
