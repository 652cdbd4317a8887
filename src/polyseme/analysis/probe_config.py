"""The settings of a linear probe. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.base.config import Config, setting


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Config):
    """How a linear probe is trained."""

    epochs: int = setting(10, "Passes over the training vectors.", min=1, group="Training")
    min_steps: int = setting(500, "Minimum number of steps: small data is passed over more often.", min=0, group="Training")
    batch_size: int = setting(512, "Vectors per batch.", min=1, group="Training")
    learning_rate: float = setting(5e-3, "Initial learning rate; it decays linearly to zero.", above=0, group="Training")
    mix_learning_rate: float = setting(2e-2, "Initial learning rate of the layer mix.", above=0, group="Training")
    weight_decay: float = setting(1e-2, "Weight decay of the softmax layer.", min=0, group="Training")
    seed: int = setting(0, "Seed of the order of the batches.", group="Training")
