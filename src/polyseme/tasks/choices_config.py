"""The settings of multiple choice."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.base.config import setting
from polyseme.tasks.config import SequenceTaskConfig


@dataclass(frozen=True, kw_only=True)
class ChoicesConfig(SequenceTaskConfig):
    """A multiple-choice network: an encoder and a head."""

    hidden_size: int = setting(50, "Units of a head with a hidden layer.", min=1, group="Training")
    dropout: float = setting(0.1, "Dropout probability below the head.", min=0, below=1, group="Training")

    @property
    def is_linear(self) -> bool:
        return True
