"""The settings of sentence-pair tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.tasks.classification_config import TableTaskConfig, TextPooling
from polyseme.tasks.config import FeaturesConfig


@dataclass(frozen=True, kw_only=True)
class PairsConfig(TableTaskConfig):
    """A classifier or regressor of sentence pairs."""

    second: str | None = setting(None, "Column of the second text, together with the first.", metavar="COLUMN", group="Data")
    goal: Literal["classes", "score"] = setting(
        "classes", "Predict a label or a number.", default_text="score if labels are fractions, else classes", group="Data"
    )
    positive_label: str | None = setting(
        None,
        "Positive label of the metric f1, if there are two labels.",
        default_text="the last one that does not begin with not or non",
        metavar="LABEL",
        group="Data",
    )
    min_score: float | None = setting(None, "Gold score that is scaled to 0.", default_text="the lowest", group="Data")
    max_score: float | None = setting(None, "Gold score that is scaled to 1.", default_text="the highest", group="Data")
    features: FeaturesConfig = field(
        default_factory=lambda: FeaturesConfig(norm="none", dropout=0.15, positions=("input", "output"))
    )
    network: Literal["esim", "siamese", "linear"] = setting(
        "esim",
        "esim: texts attend to each other. siamese: one vector for each text. linear: one encoder and a head.",
        group="Training",
    )
    both_orders: bool = setting(False, "With linear, read each pair in both orders, as GPT does.", group="Training")
    hidden_size: int = setting(200, "Units of an LSTM in each direction, and of hidden layers.", min=1, group="Training")
    layers: int = setting(1, "LSTM layers of siamese; 0: pool word vectors.", min=0, option="network_layers", group="Training")
    pooling: TextPooling = setting("both", "Pooling of siamese: mean, maximum, or both concatenated.", group="Training")
    dropout: float = setting(0.3, "Dropout probability.", min=0, below=1, group="Training")
    wide_dropout: float = setting(
        0.3, "Probability of leaving out the n-gram scores of a training pair.", min=0, below=1, group="Training"
    )
    metric: Literal["accuracy", "macro_f1", "f1", "pearson", "spearman"] | None = setting(
        None, "Metric that chooses the best network.", default_text="accuracy, or pearson for scores", group="Training"
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        score = self.goal == "score"
        if self.both_orders and not self.is_linear:
            yield f"{arg('both_orders', True)} needs {arg('network', 'linear')}"
        if self.metric is not None and (self.metric in ("pearson", "spearman")) != score:
            yield f"{arg('metric', self.metric)} does not apply to {arg('goal', self.goal)}"
        if self.positive_label is not None and score:
            yield f"{arg('positive_label', self.positive_label)} does not apply to {arg('goal', 'score')}"
        if not score and (self.min_score is not None or self.max_score is not None):
            yield f"{arg('min_score')} and {arg('max_score')} need {arg('goal', 'score')}"
        if self.min_score is not None and self.max_score is not None and not self.min_score < self.max_score:
            yield f"{arg('min_score', self.min_score)} must be below {arg('max_score', self.max_score)}"
        if (self.text is None) != (self.second is None):
            yield f"{arg('text')} and {arg('second')} name two columns: give both or neither"
