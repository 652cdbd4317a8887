"""Options of a labelled data set with a fine-tuned encoder: the encoder and a head, as ULMFiT, GPT and BERT were published.

The options of a data set are those of a network over frozen vectors. A fine-tuned encoder needs no such network: it has another
learning rate (`polyseme.studies.recipes`), few epochs, and no word embeddings of the task. Tasks without a head alone, and
several encoders together, keep the options of the data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.studies.sets import LabelledSet
from polyseme.studies.train import encoder_names
from polyseme.tasks.config import LINEAR

FINETUNE, FROZEN = "finetune", "frozen"
"""The modes of encoders, and the scopes of options for them."""
LINEAR_TASKS = ("tagging", "classification", "pairs", "reading")
"""Tasks whose network can be an encoder and a head."""
BERT_DEFAULTS: Mapping[str, Any] = {"batch_size": 32, "epochs": 4, "patience": 4, "dropout": 0.1}
"""As in the BERT paper."""
DATA = (
    *("column", "scheme", "classes", "phrases", "sentence_copies"),
    *("text", "second", "label", "header", "format", "strict", "goal", "max_answer_length", "max_span_width", "max_length"),
)
"""Options of how files are read and scored: those of the data set always apply."""
FROZEN_ONLY = ("word_features", "phrase_context", "document_context")
"""Options that apply only to frozen encoders."""


def without_mode(row: str) -> str:
    """Return a row of encoders without `:finetune`.

    >>> without_mode("word2vec+bert:finetune")
    'word2vec+bert'
    """
    return row.removesuffix(f":{FINETUNE}")


def default_options(labelled: LabelledSet, given: Mapping[str, Any], encoders: str) -> dict[str, Any]:
    """Return the options of a data set with some encoders, to which the given ones are added."""
    own = dict(labelled.options)
    if given.get("mode") != FINETUNE:
        return own
    own |= {name: False for name in FROZEN_ONLY if name in own}
    other_network = given.get("network", LINEAR) != LINEAR or bool(given.get("network_layers"))
    if labelled.task not in LINEAR_TASKS or other_network or len(encoder_names(encoders)) != 1:
        return own
    return {**{name: value for name, value in own.items() if name in DATA}, "network": LINEAR, **BERT_DEFAULTS}
