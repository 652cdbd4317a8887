"""The state of a run, captured and restored: what a checkpoint holds, and what timing must undo."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.run import Run
from polyseme.training.base import Batches, Learner
from polyseme.training.interval_metrics import IntervalMetrics
from polyseme.training.optim import optimizer_tensors, restore_optimizer


@dataclasses.dataclass
class Progress:
    """Counters of a run since its first step."""

    step: int = 0
    words: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_step: int | None = None
    wait_count: int = 0
    scores: dict[str, float] = dataclasses.field(default_factory=dict)
    ended: str | None = None
    """Why the run is finished: budget, patience or gradients; None: it is not."""


@dataclasses.dataclass
class TrainingState:
    """All that training changes."""

    learner: Learner
    optimizer: torch.optim.Optimizer
    batches: Batches
    interval: IntervalMetrics
    run: Run

    def shared(self) -> dict[str, Tensor]:
        """Return what is the same in every process: weights and optimizer state. Views, not copies."""
        weights = {f"model/{name}": value for name, value in self.learner.state_dict().items()}
        return weights | {f"optimizer/{name}": value for name, value in optimizer_tensors(self.optimizer).items()}

    def own(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return what belongs to this process: carried state; and position, random states and sums as JSON values."""
        carried = {name: value.detach().cpu().clone() for name, value in self.learner.carried_state().items()}
        values = {
            "position": self.batches.position(),
            "random": self.run.random_states(),
            "interval": self.interval.state(),
        }
        return carried, values

    def restore_shared(self, tensors: Mapping[str, Tensor], *, optimizer: bool = True) -> None:
        """Restore what `shared` returned, the optimizer state only on request; refuse the weights of another model."""
        groups: dict[str, dict[str, Tensor]] = {"model": {}, "optimizer": {}}
        for path, value in tensors.items():
            group, _, name = path.partition("/")
            if group in groups:
                groups[group][name] = value
        expected = self.learner.state_dict()
        wrong = sorted(set(expected) ^ set(groups["model"]))
        wrong += [name for name, value in groups["model"].items() if name in expected and expected[name].shape != value.shape]
        if wrong:
            raise PolysemeError(f"this folder holds a run of another model ({wrong[0]} differs): choose another folder")
        self.learner.load_state_dict(groups["model"])
        if optimizer:
            restore_optimizer(self.optimizer, groups["optimizer"])
        self.optimizer.zero_grad()

    def restore_own(self, carried: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Restore what `own` returned; the random states last, because building things draws random numbers."""
        self.learner.restore_carried_state({name: value.to(self.run.device) for name, value in carried.items()})
        try:
            self.batches.seek(values["position"])
        except KeyError:
            raise PolysemeError(
                f"this run has other batches: give its {arg('batching')} to resume it, or choose another folder"
            ) from None
        self.interval.restore(values["interval"])
        self.run.restore_random(values["random"])

    def finite(self) -> bool:
        return all(bool(torch.isfinite(weight).all()) for weight in self.learner.parameters())
