"""Losses and gradient norms since the last line of the log, summed in float64 on the device, so that no step waits for them.

A logged loss is the sum over the interval divided by its words, not a running average, which depends on its decay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from polyseme.base import format1
from polyseme.training.base import Loss
from polyseme.training.distributed import SingleProcess

_MAX_CONSECUTIVE_SKIPS = 20  # after that, no gradient will be followed any more
_PLAIN = ("names", "words", "steps", "seconds", "sampled")


class IntervalMetrics:
    """Sums since the last line of the log. Checkpoints keep them, so that a resumed run logs the same numbers."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.consecutive_skips = torch.zeros((), dtype=torch.int64, device=device)  # not reset by log lines
        self.clear()

    def clear(self) -> None:
        self.names: list[str] = []
        self.sums: Tensor | None = None  # (1 + components,): the total and each component, times words
        self.norms = torch.zeros((), dtype=torch.float64, device=self._device)
        self.skipped = torch.zeros((), dtype=torch.int64, device=self._device)
        self.words, self.steps, self.seconds, self.sampled = 0, 0, 0.0, False

    def add_batch(self, loss: Loss) -> None:
        names = list(loss.components)
        values = torch.stack([value.detach().double() for value in (loss.total, *loss.components.values())]) * loss.words
        if self.sums is None:
            self.names, self.sums = names, values
        elif names != self.names:
            raise ValueError(f"a learner's loss has the components {names}; before they were {self.names}")
        else:
            self.sums += values
        self.words += loss.words
        self.sampled |= loss.sampled

    def add_step(self, norm: Tensor, skip_norm: float | None = None) -> None:
        """Add an optimizer step; the norm of a skipped gradient does not enter the mean."""
        norm = norm.detach()
        if skip_norm is not None:
            skipped = ~(norm <= skip_norm)
            self.skipped += skipped
            self.consecutive_skips = (self.consecutive_skips + 1) * skipped
            norm = norm.masked_fill(skipped, 0.0)
        self.norms += norm
        self.steps += 1

    def finite(self, processes: SingleProcess) -> bool:
        """Whether every loss and gradient is finite, in all processes; waits for the device."""
        own = 0.0 if self.sums is None else float(self.sums.sum() + self.norms)
        return math.isfinite(processes.sum([own])[0])

    def stuck(self) -> bool:
        """Whether so many steps in a row were skipped that the weights will not change again."""
        return int(self.consecutive_skips) >= _MAX_CONSECUTIVE_SKIPS

    def summary(self, processes: SingleProcess) -> dict[str, Any]:
        """Return the line of the log, over all processes."""
        own = [] if self.sums is None else self.sums.tolist()
        words, *sums = processes.sum([float(self.words), *own])
        label = "sampled_loss" if self.sampled else "loss"
        means = {name: value / words for name, value in zip([label, *self.names], sums, strict=True)}
        speed = words / self.seconds if self.seconds else 0.0
        skipped = int(self.skipped)
        norm = float(self.norms) / max(self.steps - skipped, 1)
        more = {"gradients_skipped": skipped} if skipped else {}
        return means | {"gradient_norm": norm, **more, "words_per_second": round(speed, 1)}

    def loss_sums(self) -> tuple[float, int]:
        """Return the sum of loss times words of this process so far, and its words; waits for the device."""
        return (0.0, 0) if self.sums is None else (float(self.sums[0]), self.words)

    def mean_loss(self) -> float | None:
        """Return the mean loss of this process so far; waits for the device."""
        loss, words = self.loss_sums()
        return None if self.sums is None else loss / max(words, 1)

    def state(self) -> dict[str, Any]:
        """Return the sums as JSON values, which keep every bit of a float."""
        sums = None if self.sums is None else self.sums.tolist()
        counts = {"skipped": int(self.skipped), "consecutive_skips": int(self.consecutive_skips)}
        return {name: getattr(self, name) for name in _PLAIN} | {"sums": sums, "norms": float(self.norms), **counts}

    def restore(self, state: Mapping[str, Any]) -> None:
        state = format1.translate("IntervalMetrics", state)
        self.clear()
        for name in _PLAIN:
            setattr(self, name, state[name])
        if state["sums"] is not None:
            self.sums = torch.tensor(state["sums"], dtype=torch.float64, device=self._device)
        self.norms.fill_(state["norms"])
        self.skipped.fill_(state.get("skipped", 0))
        self.consecutive_skips.fill_(state.get("consecutive_skips", 0))
