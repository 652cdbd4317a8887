"""Published settings of fine-tuning, for an encoder with a head alone and settings that the user does not give.

A task's own network learns at rates that would ruin a pre-trained one. Epochs are left to the data set (published are 3 or 4
for BERT and GPT).
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
"""By kind of encoder, under the option names of `polyseme.train`."""


def classification_options(task: str, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return the options of a classifier on pre-trained encoders: a word table of its own only learns the data by heart."""
    contextual = any(not encoder.static for encoder in encoders)
    given = [name for name in ("task_embeddings", "word_dim", "characters", "unknown_words", "word_dropout") if name in options]
    at_input = "input" in options.get("positions", ("input",))
    is_own = task == "classification" and contextual and at_input and len(encoders) == 1 and not given
    return {"task_embeddings": False} if is_own and options.get("network") != "linear" else {}


def recipe_options(config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return the published options that are not given, for a fine-tuned encoder with a head alone; else none."""
    if config.features.mode != "finetune" or len(encoders) != 1 or not config.is_linear:
        return {}
    recipe = RECIPES.get(encoders[0].kind, {})
    return {name: value for name, value in recipe.items() if name not in options}
