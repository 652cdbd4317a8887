"""The contract between the trainer and what it trains: a `Learner`, its `Batches`, the `Loss` of a batch.

The trainer sees nothing else, so one loop serves every pre-training objective and every task. For a resumed run to be the same
run, all that training changes must be in one of four places: the learner's `state_dict`, its `carried_state()`, the batches'
`position()`, or the global random states. A learner with a random generator of its own adds its state to `carried_state()`.
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
    """The loss of one batch."""

    total: Tensor
    """Scalar to back-propagate: the mean per word."""
    words: int
    components: dict[str, Tensor] = dataclasses.field(default_factory=dict)
    """Scalars for the log (forward, backward, ...), means over the same words; every batch has the same names."""
    sampled: bool = False
    """Whether `total` comes from a sample of the vocabulary; such losses are logged as `sampled_loss`."""


@dataclasses.dataclass(frozen=True)
class LrMultiplier:
    """Learning rate of the weights whose names begin with `prefix`, relative to the run's."""

    prefix: str
    multiplier: float = 1.0
    start: float = 0.0
    """Fraction of the run before which these weights are frozen: several rules give gradual unfreezing."""


class Learner(nn.Module, ABC):
    """What a `Trainer` trains: it gives a loss to minimize, a score to select by, and a folder that users load."""

    score_name: str = "loss"
    """Which number of `evaluate` to minimize."""

    @property
    def shown_score(self) -> str:
        """Which number of `evaluate` a person wants to see."""
        return self.score_name

    def is_perfect(self, score: float) -> bool:
        """Return whether a value of `score_name` stands for a result without an error."""
        return False

    @property
    def prefers_later(self) -> bool:
        """Whether the later one of two models with the same score is kept."""
        return False

    def prepare(self, batch: Any) -> Any:
        """Prepare a batch for `loss`, for example move it to the device.

        On a GPU this runs ahead in another thread: draw no random numbers here, and use nothing that training changes.
        """
        return batch

    @abstractmethod
    def loss(self, batch: Any) -> Loss:
        """Compute the loss of one prepared batch."""

    @abstractmethod
    def evaluate(self, dev: Any) -> dict[str, float]:
        """Compute numbers on held-out data, among them `score_name`; in evaluation mode, without gradients, in float32."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the usable model to the folder, each file atomically; leave other files (`run/`) alone."""

    def lr_multipliers(self) -> list[LrMultiplier]:
        """Return rules for weights with another learning rate; the longest prefix that fits a weight wins."""
        return []

    def carried_state(self) -> dict[str, Tensor]:
        """Return state that lives across batches, such as an LSTM's; each process has its own."""
        return {}

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Restore what `carried_state` returned; an empty mapping is the state before the first batch."""


class Batches(Protocol):
    """Endless batches with a position.

    Under torchrun each process has its own; `words_per_epoch` counts the words of all processes.
    """

    @property
    def words_per_epoch(self) -> int:
        """Words of one pass over the data, over all processes."""

    def __iter__(self) -> Iterator[Any]:
        """Yield batches from the current position on, epoch after epoch, without end."""

    def position(self) -> dict[str, Any]:
        """Return where the next batch begins, as JSON values; prefetched batches do not count."""

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position without reading what comes before it; the next `iter` begins there."""
