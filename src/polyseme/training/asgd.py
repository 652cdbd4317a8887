"""ASGD: plain gradient descent at a constant rate, evaluated and saved with averaged weights (Polyak and Juditsky 1992).

The weights of a step jump around a minimum; their average lies in it. Published for the AWD-LSTM (NT-ASGD, Merity et al. 2017)
is the plain average of all steps from the one where the dev score stops falling. Here later steps simply count more: step t
with t ** DECAY, about (Shamir and Zhang 2013). So the weights of the beginning are soon forgotten, and no such step has to be
found.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

DECAY = 3
"""With 0 all steps count the same; with 3 half of the average is made of the last sixth of the steps."""


class AveragedSgd(torch.optim.SGD):
    """Gradient descent that keeps an average of each weight: `average` and `step` in its state."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        super().step()
        for group in self.param_groups:
            for weight in group["params"]:
                state = self.state[weight]
                if not state:
                    state.update(average=torch.zeros_like(weight), step=torch.zeros(()))
                state["step"] += 1
                state["average"].lerp_(weight, (DECAY + 1) / (float(state["step"]) + DECAY))


@contextlib.contextmanager
def averaged_weights(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Give the weights their averages in a `with` block, if the optimizer keeps any."""
    states = optimizer.state.items() if isinstance(optimizer, AveragedSgd) else ()
    with torch.no_grad():
        own = [(weight, weight.clone()) for weight, _ in states]
        for weight, state in states:
            weight.copy_(state["average"])
    try:
        yield
    finally:
        with torch.no_grad():
            for weight, value in own:
                weight.copy_(value)
