"""Which layers `embed` returns: "top", "mean" or a number give (words, dim), "all" or a list gives (layers, words, dim)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import UsageError, arg
from polyseme.encoders.batch import whole_number

LayerChoice = Literal["all", "top", "mean"] | int | Sequence[int]


@dataclass(frozen=True)
class LayerSelection:
    """The chosen layers of a stack."""

    index: slice | list[int] | None
    """None: the mean of all."""
    single: bool
    """Whether the result is one layer, whose arrays have no axis of layers."""

    @property
    def only_first(self) -> bool:
        """Whether no layer but layer 0 is chosen."""
        return self.index in (slice(0, 1), [0])

    def stack(self, states: Tensor) -> Tensor:
        """Return the chosen layers of (layers, ...) as a stack; the mean is a stack of one."""
        return states.mean(0, keepdim=True) if self.index is None else states[self.index]


def select_layers(choice: LayerChoice, count: int) -> LayerSelection:
    """Check a choice among `count` layers.

    >>> select_layers("top", 3).index, select_layers([0, 2], 3).index
    (slice(2, 3, None), [0, 2])
    """
    if isinstance(choice, str) and choice in ("mean", "all"):
        return LayerSelection(None, True) if choice == "mean" else LayerSelection(slice(0, count), False)
    single = isinstance(choice, str) or not isinstance(choice, Iterable)
    given = [count - 1 if choice == "top" else choice] if single else list(choice)  # type: ignore[arg-type]
    numbers = [number for each in given if (number := whole_number(each)) is not None and 0 <= number < count]
    if not numbers or len(numbers) < len(given):
        allowed = f"all, top, mean, a number from 0 to {count - 1}, or a list of such numbers"
        raise UsageError(f"{arg('layers')} is {choice!r}; allowed: {allowed}")
    return LayerSelection(slice(numbers[0], numbers[0] + 1) if single else numbers, single)


def to_arrays(states: Tensor, positions: list[slice]) -> Callable[[], list[np.ndarray]]:
    """Start copying states (layers, batch, words, dim) to the host; the result cuts out each row's positions when called."""
    if states.is_cuda:
        host = torch.empty(states.shape, dtype=torch.float32, pin_memory=True)
        host.copy_(states, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
    else:
        host, done = states.float(), None
    owned = host.untyped_storage().nbytes() == host.nbytes  # and not a view of more layers

    def arrays() -> list[np.ndarray]:
        if done is not None:
            done.synchronize()
        array = host.numpy()
        if done is None and len(positions) == 1 and owned:  # a long text: no second copy of it
            return [array[:, 0, positions[0]]]
        return [array[:, row, position].copy() for row, position in enumerate(positions)]

    return arrays
