"""What all objectives of pre-training share: a loss around a model that they save with its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyseme.encoders.base import Encoder
from polyseme.training.base import Learner

EVALUATION_SCORES = 1 << 22
"""Scores computed at a time in evaluation (16 MB), which must not need more memory than training."""


class Objective(Learner):
    """A training loss around a model."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model: Any = model
        self.card: str | None = None
        """Text of the README.md."""

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save_pretrained(folder, card=self.card)
