"""Discriminative fine-tuning (Howard and Ruder 2018): learning-rate multipliers by layer group, and gradual unfreezing."""

from __future__ import annotations

import math

from polyseme.encoders.base import Encoder
from polyseme.encoders.config import Unfreeze
from polyseme.training.base import LrMultiplier


def lr_multipliers(
    encoder: Encoder, prefix: str, *, multiplier: float = 1.0, decay: float = 1.0, unfreeze: Unfreeze = "all"
) -> list[LrMultiplier]:
    """Return a learning-rate multiplier for each weight of each layer group.

    The top group has `multiplier`, each group below it `decay` times less. `unfreeze`: all groups train, the top one alone,
    or one more from the top down each tenth of the run. A start state trains with the top group; the output layer has no
    multiplier here. `prefix` is the encoder's name in the module that is trained.
    """
    groups = encoder.layer_groups()
    ordered = [name for name in reversed(groups) if name not in ("start", "output")]
    depths = {name: depth for depth, name in enumerate(ordered)} | ({"start": 0} if "start" in groups else {})
    multipliers = []
    for name, depth in depths.items():
        begin = {"all": 0.0, "gradual": depth / 10, "top": math.inf if depth else 0.0}[unfreeze]
        weights = {id(weight) for weight in groups[name].parameters()}
        paths = [path for path, weight in encoder.named_parameters() if id(weight) in weights]
        multipliers += [LrMultiplier(prefix + path, multiplier / decay**depth, begin) for path in paths]
    return multipliers
