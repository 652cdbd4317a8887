"""The settings of training a task."""

from __future__ import annotations

from dataclasses import dataclass, field

from polyseme.base.config import Config, setting
from polyseme.training.optim_config import OptimConfig

SKIP_NORM = 1e4
"""A longer gradient has exploded; clipped, it would still point anywhere."""


@dataclass(frozen=True, kw_only=True)
class FitConfig(Config):
    """How a task is trained."""

    batch_size: int | None = setting(
        32, "Examples per batch.", min=1, default_text="32; fewer where they are long", group="Training"
    )
    epochs: int | None = setting(
        None,
        "Passes over the training data; the learning rate falls to zero over them.",
        min=1,
        default_text="by the task and the number of examples",
        group="Training",
    )
    min_steps: int = setting(
        0,
        "Minimum number of training steps: small data is passed over more often. Without `epochs`, 0 means 100.",
        min=0,
        group="Training",
    )
    patience: int | None = setting(
        None,
        "Stop after this many epochs without a better dev score.",
        min=1,
        default_text="never stop early",
        group="Training",
    )
    train_fraction: float = setting(
        1.0, "Fraction of the training data to use, drawn by the seed.", above=0, max=1, group="Training"
    )
    optim: OptimConfig = field(
        default_factory=lambda: OptimConfig(
            learning_rate=1e-3, weight_decay=0.0, warmup=0.05, clip_norm=5.0, skip_norm=SKIP_NORM
        )
    )
