"""Settings of the optimizer and of the learning-rate schedule. Imports no PyTorch, so that `--help` stays fast."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg

_GROUP = "Training"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimConfig(Config):
    """How the weights are updated."""

    optimizer: Literal["adamw", "muon", "adagrad", "asgd"] = setting(
        "adamw",
        "adamw; muon, whose steps cost a little more and learn more (matrices by Muon, all else by AdamW); adagrad as in the "
        "ELMo paper (with learning rate 0.2 and constant decay); or asgd, gradient descent with averaged weights, as in the "
        "paper of the AWD-LSTM (with learning rate 30, weight decay 0.0000012 and constant decay).",
        group=_GROUP,
    )
    learning_rate: float = setting(1e-3, "Peak learning rate.", above=0, group=_GROUP)
    weight_decay: float = setting(
        0.01, "Weight decay; biases and other vectors are not decayed. Adagrad has none.", min=0, group=_GROUP
    )
    betas: tuple[float, float] = setting((0.9, 0.999), "Beta coefficients of AdamW.", min=0, below=1, group=_GROUP)
    epsilon: float = setting(1e-8, "Epsilon of AdamW.", min=0, group=_GROUP)
    initial_accumulator: float = setting(
        1.0, "Initial sum of squares of Adagrad, which has no epsilon here.", above=0, group=_GROUP
    )
    warmup: float = setting(
        0.02,
        "Fraction of the run in which the learning rate rises.",
        min=0,
        below=1,
        metavar="FRACTION",
        group=_GROUP,
    )
    decay: Literal["linear", "cosine", "constant", "slanted"] = setting(
        "linear",
        "Shape of the learning-rate schedule after warm-up; slanted: the slanted triangle of ULMFiT, from and to 1/32 of the "
        "peak, where warm-up is published as 0.1.",
        group=_GROUP,
    )
    clip_norm: float | None = setting(
        1.0,
        "Clip gradients to this norm over all weights; none: no clipping.",
        above=0,
        default_text="none",
        group=_GROUP,
    )
    skip_norm: float | None = setting(
        None,
        "Treat a gradient as zero if its norm is above this or not finite: clipping cannot repair the direction of an exploded "
        "gradient; none: use every gradient.",
        above=0,
        default_text="none",
        group=_GROUP,
    )

    def problems(self) -> Iterable[str]:
        if self.decay == "slanted" and not self.warmup:
            yield f"{arg('decay', 'slanted')} needs a {arg('warmup')} above 0 (published: 0.1)"
        if self.optimizer == "asgd" and self.learning_rate * self.weight_decay >= 1:
            yield (
                f"{arg('weight_decay')} is {self.weight_decay:g}; allowed with {arg('learning_rate')} {self.learning_rate:g}: "
                f"below {1 / self.learning_rate:g}, because a step subtracts the product of both from each weight (published: "
                "0.0000012 with 30)"
            )
