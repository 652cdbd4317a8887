"""Options that follow from the encoders of a task, where the user does not give them.

Fine-tuning has published settings for an encoder with a head alone: a task's own network learns at rates that would ruin a
pre-trained one. Epochs are left to the data set (published are 3 or 4 for BERT and GPT).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyseme.base.errors import UsageError, arg
from polyseme.encoders.base import Encoder
from polyseme.tasks.config import LINEAR, TaskConfig

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
LINEAR_TAGGER = {"network_layers": 0, "crf": False, "task_embeddings": False, "layers": "top", "norm": "none"}
"""A layer over one encoder's vectors (Devlin et al. 2019)."""
TAGGER_WORD_DROPOUT = 0.4
"""Beside frozen encoders, so that a tagger relies on what they say of a word in its context and not on the word itself."""
PAIR_LAYERS_SIZE = 2048
"""All encoder layers, concatenated, are features of pairs up to this size; beyond it (published ELMo, BERT) their mix is."""


def network_options(task: str, config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return the options of a tagger that is an encoder and a layer."""
    if task != "tagging" or getattr(config, "network", None) != LINEAR:
        return {}
    if options.get("network_layers"):
        raise UsageError(f"{arg('network', LINEAR)} has no LSTM layers: omit {arg('network_layers')}, or {arg('network')}")
    if len(encoders) != 1 or encoders[0].static:
        given = "+".join(encoder.kind for encoder in encoders) or "none"
        raise UsageError(f"{arg('network', LINEAR)} needs exactly one contextual encoder; got {given}")
    return {name: value for name, value in LINEAR_TAGGER.items() if name not in options}


def word_options(task: str, config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return options of a task's own words that follow from the encoders beside them."""
    if "input" not in config.features.positions or not encoders:
        return {}
    given = any(name in options for name in ("task_embeddings", "word_dim", "characters", "unknown_words", "word_dropout"))
    alone = len(encoders) == 1 and not encoders[0].static and not config.is_linear
    if task == "classification" and alone and not given:
        return {"task_embeddings": False}  # a classifier's word table would only learn the data by heart
    in_context = config.features.mode == "frozen" and not any(encoder.static for encoder in encoders)
    own_words = config.features.words.enabled and not config.is_linear
    if task == "tagging" and in_context and own_words and "word_dropout" not in options:
        return {"word_dropout": TAGGER_WORD_DROPOUT}
    return {}


def layer_options(task: str, config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return the encoder layers that a network for pairs reads: all of frozen encoders, unless they are many."""
    in_context = [encoder for encoder in encoders if not encoder.static]
    if task != "pairs" or "layers" in options or getattr(config, "network", None) != "esim" or not in_context:
        return {}
    size = sum(encoder.layers * encoder.dim for encoder in in_context)
    return {"layers": "all"} if config.features.mode == "frozen" and size <= PAIR_LAYERS_SIZE else {}


def recipe_options(config: TaskConfig, options: Mapping[str, Any], encoders: Sequence[Encoder]) -> dict[str, Any]:
    """Return the published options that are not given, for a fine-tuned encoder with a head alone; else none."""
    if config.features.mode != "finetune" or len(encoders) != 1 or not config.is_linear:
        return {}
    recipe = RECIPES.get(encoders[0].kind, {})
    return {name: value for name, value in recipe.items() if name not in options}
