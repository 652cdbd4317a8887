"""The contract between the loop and what it trains: a `Learner`, its `Batches`, the `Loss` of one batch.

The loop sees nothing else, so that one loop serves every objective and every task. For a resumed run to be the same run,
all that training changes must lie in one of four places: the learner's `state_dict`, its `carried_state()`, the batches'
`position()`, or the global random states. A learner with a generator of its own puts its state in `carried_state()`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn


@dataclasses.dataclass
class Loss:
    """What one batch gave."""

    total: Tensor
    """Scalar to back-propagate: the mean for each word."""
    words: int
    """The words that it is a mean over."""
    state: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    """Scalars for the log (forward, backward, ...), each a mean over the same words; the same names in every batch."""
    sampled: bool = False
    """Whether `total` comes from a sample of the vocabulary: then it compares with no other loss, and is labelled so."""


@dataclasses.dataclass(frozen=True)
class LrMultiplier:
    """How fast the weights whose names begin with `prefix` move, against the run's rate."""

    prefix: str
    multiplier: float = 1.0
    """Times the run's rate."""
    start: float = 0.0
    """The share of the run before which they stay as they are: with several lr_multipliers, parts thaw one by one."""


class Learner(nn.Module, ABC):
    """Something that learns: it gives a loss to descend, a score to choose by, and a folder that users load."""

    score_name: str = "loss"
    """Which number of `evaluate` is to be made small."""

    def prepare(self, batch: Any) -> Any:
        """What can be made of a batch before its step, such as tensors on the device; `loss` gets the result.

        On a GPU this runs ahead in another thread: it must draw no random numbers, and look at nothing that training changes.
        """
        return batch

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """The loss of one prepared batch."""

    @abstractmethod
    def evaluate(self, dev: Any) -> dict[str, float]:
        """Numbers on held-out data, `score_name` among them. Called in evaluation mode, without gradients, in float32."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the usable model to the folder, each file whole or not at all; other things there (`run/`) stay."""

    def lr_multipliers(self) -> list[LrMultiplier]:
        """Weights that move otherwise than the rest; of several that fit a weight, the one with the longest prefix counts."""
        return []

    def carried_state(self) -> dict[str, Tensor]:
        """State that lives across batches, such as an LSTM's; kept for each process by itself."""
        return {}

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Put back what `carried` gave; an empty mapping means the state before the first batch."""


class Batches(Protocol):
    """Endless batches that know where they are.

    Under torchrun each process has its own; `words_per_epoch` counts the words of all processes together.
    """

    @property
    def words_per_epoch(self) -> int:
        """The words that one pass gives, over all processes."""

    def __iter__(self) -> Iterator[Any]:
        """Batches from the current position on, epoch after epoch, for ever."""

    def position(self) -> dict[str, Any]:
        """Where the next batch begins, as JSON values; batches that were fetched ahead and not yet given do not count."""

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position without reading what lies before it; the next `iter` begins there."""
