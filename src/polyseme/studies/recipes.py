"""How encoders were fine-tuned in their papers, where nothing but a head stands above them and nobody says otherwise.

A task's own network learns at rates that would ruin a pre-trained one. These are the options of the papers by the names that
`polyseme.train` has for them; passes over the data are left to who knows the data (published are 3 or 4 for BERT and GPT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.encoders.base import Encoder
from polyseme.tasks.config import TaskConfig

RECIPES: dict[str, dict[str, Any]] = {
    "bert": {"learning_rate": 5e-5, "encoder_lr_multiplier": 1.0, "warmup": 0.1},  # Devlin et al. 2019: 2e-5 to 5e-5
    "gpt": {"learning_rate": 6.25e-5, "encoder_lr_multiplier": 1.0, "warmup": 0.002},  # Radford et al. 2018
    "ulmfit": {  # Howard and Ruder 2018
        "learning_rate": 0.01,
        "encoder_lr_multiplier": 1.0,
        "layer_decay": 2.6,
        "unfreeze": "gradual",
        "warmup": 0.1,
        "decay": "slanted",
    },
}
"""By the kind of encoder."""


def recipe_options(config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """The published options that were not given, for a config that is a fine-tuned encoder and a head; else none."""
    if config.features.mode != "finetune" or len(encoders) != 1 or not config.is_linear:
        return {}
    usual = RECIPES.get(encoders[0].kind, {})
    return {name: value for name, value in usual.items() if name not in options}
