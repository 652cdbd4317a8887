"""Discriminative fine-tuning (Howard and Ruder 2018): the parts of an encoder move at different paces, or begin one by one."""

from __future__ import annotations

import math
from typing import Literal

from polyseme.encoders.base import Encoder
from polyseme.training.base import Pace

Unfreeze = Literal["all", "top", "gradual"]


def lr_multipliers(
    encoder: Encoder, prefix: str, *, rate: float = 1.0, decay: float = 1.0, thaw: Unfreeze = "all"
) -> list[Pace]:
    """A pace for each weight of each part, from `rate` at the top, each part `decay` times slower than the one above.

    `prefix` is the name of the encoder in the learner. `thaw`: all parts move, the top one alone, or from the top down a
    further one each tenth of the run. A start state goes with the top; an output layer has no pace here.
    """
    parts = encoder.layer_groups()
    depths = {name: depth for depth, name in enumerate(reversed([name for name in parts if name not in ("start", "output")]))}
    found = []
    for name, depth in (depths | ({"start": 0} if "start" in parts else {})).items():
        begin = {"all": 0.0, "gradual": depth / 10, "top": math.inf if depth else 0.0}[thaw]
        inside = {id(weight) for weight in parts[name].parameters()}
        paths = [path for path, weight in encoder.named_parameters() if id(weight) in inside]
        found += [Pace(prefix + path, rate / decay**depth, begin) for path in paths]
    return found
