"""The settings of reading comprehension."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import setting
from polyseme.metrics.reading import ScoringRules
from polyseme.tasks.config import FeaturesConfig, TaskConfig


@dataclass(frozen=True, kw_only=True)
class ReadingConfig(TaskConfig):
    """A network that answers questions with spans of a paragraph."""

    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(dropout=0.2, positions=("input", "output")))
    rules: ScoringRules | None = setting(
        None,
        "How answers are compared: as SQuAD v1.1 or v2, or CMRC for Chinese.",
        default_text="by the training data",
        group="Data",
    )
    allow_no_answer: bool | None = setting(
        None, "Whether the network may find no answer.", default_text="as in the training data", group="Data"
    )
    max_answer_length: int = setting(30, "Maximum number of words of an answer.", min=1, metavar="WORDS", group="Data")
    max_paragraph_length: int = setting(
        400,
        "Words of a paragraph in training; longer ones are cut around the answer.",
        min=1,
        metavar="WORDS",
        group="Training",
    )
    network: Literal["bidaf", "linear"] = setting(
        "bidaf", "bidaf: BiDAF with self-attention. linear: a BERT and a layer that scores spans.", group="Training"
    )
    hidden_size: int = setting(100, "Units of each LSTM in each direction.", min=1, group="Training")
    dropout: float = setting(0.3, "Dropout probability.", min=0, below=1, group="Training")

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.is_linear:
            yield from self.features.linear_problems()
