"""What happened since the last line of the log: sums in float64, on the device, so that no step waits for its loss.

A loss shown is the sum over the interval divided by its words, against a running average, whose meaning nobody can say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from polyseme.training.base import Loss
from polyseme.training.distributed import SingleProcess

_MANY = 20  # steps in a row without a gradient that could be followed: it will not come


class IntervalMetrics:
    """Sums since the last line of the log; kept in checkpoints, so that a resumed run logs the same numbers."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.consecutive_skips = torch.zeros((), dtype=torch.int64, device=device)  # whatever the log did
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.names: list[str] = []
        self.sums: Tensor | None = None  # (1 + state,): the total, then the state, each times its words
        self.norms = torch.zeros((), dtype=torch.float64, device=self._device)
        self.skipped = torch.zeros((), dtype=torch.int64, device=self._device)
        self.words, self.steps, self.seconds, self.sampled = 0, 0, 0.0, False

    def add_batch(self, loss: Loss) -> None:
        """One batch's loss."""
        names = list(loss.state)
        values = torch.stack([value.detach().double() for value in (loss.total, *loss.state.values())]) * loss.words
        if self.sums is None:
            self.names, self.sums = names, values
        elif names != self.names:
            raise ValueError(f"a learner's loss has the parts {names}; before they were {self.names}")
        else:
            self.sums += values
        self.words += loss.words
        self.sampled |= loss.sampled

    def add_step(self, norm: Tensor, skip_norm: float | None = None) -> None:
        """One step of the optimizer; a gradient that it did not follow counts as such, and not in the mean."""
        norm = norm.detach()
        if skip_norm is not None:
            skipped = ~(norm <= skip_norm)
            self.skipped += skipped
            self.consecutive_skips = (self.consecutive_skips + 1) * skipped
            norm = norm.masked_fill(skipped, 0.0)
        self.norms += norm
        self.steps += 1

    def finite(self, processes: SingleProcess) -> bool:
        """Whether every loss and gradient was a number, in all processes."""
        own = 0.0 if self.sums is None else float(self.sums.sum() + self.norms)  # waits for the device
        return math.isfinite(processes.sum_over_processes([own])[0])

    def stuck(self) -> bool:
        """Whether many steps in a row were skipped, so that the weights will not move again."""
        return int(self.consecutive_skips) >= _MANY

    def summary(self, processes: SingleProcess) -> dict[str, Any]:
        """The line of the log, over all processes."""
        own = [] if self.sums is None else self.sums.tolist()
        words, *sums = processes.sum_over_processes([float(self.words), *own])
        label = "sampled_loss" if self.sampled else "loss"
        means = {name: value / words for name, value in zip([label, *self.names], sums, strict=True)}
        speed = words / self.seconds if self.seconds else 0.0
        skipped = int(self.skipped)
        norm = float(self.norms) / max(self.steps - skipped, 1)
        more = {"gradients_skipped": skipped} if skipped else {}
        return means | {"gradient_norm": norm, **more, "words_per_second": round(speed, 1)}

    def state(self) -> dict[str, Any]:
        """JSON values; floats keep every bit in JSON."""
        sums = None if self.sums is None else self.sums.tolist()
        plain = {name: getattr(self, name) for name in ("names", "words", "steps", "seconds", "sampled")}
        return plain | {
            "sums": sums,
            "norms": float(self.norms),
            "skipped": int(self.skipped),
            "consecutive_skips": int(self.consecutive_skips),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `state` gave."""
        self.clear()
        for name in ("names", "words", "steps", "seconds", "sampled"):
            setattr(self, name, state[name])
        if state["sums"] is not None:
            self.sums = torch.tensor(state["sums"], dtype=torch.float64, device=self._device)
        self.norms.fill_(state["norms"])
        self.skipped.fill_(state.get("skipped", 0))
        self.consecutive_skips.fill_(state.get("consecutive_skips", state.get("in_a_row", 0)))
