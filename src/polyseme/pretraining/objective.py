"""What all objectives of pre-training share: a loss around a model that they save with its card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.encoders.base import Encoder
from polyseme.encoders.vocabulary_extension import unknown_log_probs
from polyseme.training.base import Learner

EVALUATION_SCORES = 1 << 22
"""Scores computed at a time in evaluation (16 MB), which must not need more memory than training."""


class Objective(Learner):
    """A training loss around a model."""

    old_size: int | None = None
    """Words of the vocabulary before an adaptation added some; None: it added none."""

    def __init__(self, model: Encoder) -> None:
        super().__init__()
        self.model: Any = model
        self.card: str | None = None
        """Text of the README.md."""

    def old_log_probs(self, states: Tensor, targets: Tensor, log_probs: Tensor) -> Tensor:
        """Return the log-probabilities of targets (n,) over the vocabulary before an adaptation: those given, (n,), but for
        unknown and added words, which are one word."""
        unknown = int(self.model.vocabulary.ids([str(self.model.vocabulary.unknown)])[0])
        rows = ((targets == unknown) | (targets >= (self.old_size or 0))).nonzero()[:, 0]
        options = {"unknown": unknown, "have": self.old_size or 0, "numbers": EVALUATION_SCORES}
        merged = unknown_log_probs(self.model.output, states[rows], **options)
        return log_probs.index_copy(0, rows, merged.to(log_probs.dtype))

    def save(self, folder: Path) -> None:
        """Write the model folder."""
        self.model.save_pretrained(folder, card=self.card)
