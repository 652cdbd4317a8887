"""How a labelled set is trained where an encoder is fine-tuned: the encoder and a head, as ULMFiT, GPT and BERT were published.

A set's own options are those of a network that stands on frozen vectors. A fine-tuned encoder needs none: it has another rate
(`polyseme.studies.recipes`), few passes, and no words of the task's own. Tasks without such a network, and several encoders
side by side, keep the set's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyseme.studies.sets import LabelledSet
from polyseme.studies.train import named_in

TUNED, FROZEN = "finetune", "frozen"
"""The modes of encoders, which learn along or stay, and the words for rows that have them."""
HEADS: Mapping[str, Mapping[str, Any]] = {
    "tagging": {"network_layers": 0, "task_embeddings": False, "crf": False, "layers": "top", "norm": "none"},
    "classification": {"network": "linear"},
    "pairs": {"network": "linear"},
    "reading": {"network": "linear"},
}
"""Options that leave nothing but a head, by task."""
USUAL: Mapping[str, Any] = {"batch_size": 32, "epochs": 4, "patience": 4, "dropout": 0.1}
"""As in BERT's paper."""
DATA = (
    *("column", "scheme", "classes", "phrases", "sentence_copies"),
    *("text", "second", "label", "header", "format", "strict", "goal", "max_answer_length", "max_span_width", "max_length"),
)
"""Options that say how files are read, and what of them counts: those of the set hold in any case."""
OF_FROZEN = ("word_features", "phrase_context", "document_context")
"""Switches for frozen encoders alone."""


def default_options(labelled: LabelledSet, given: Mapping[str, Any], encoders: str) -> dict[str, Any]:
    """The options of a set for experiments with these encoders, before those that are given."""
    own = dict(labelled.options)
    if given.get("mode") != TUNED:
        return own
    own |= {name: False for name in OF_FROZEN if name in own}
    head = HEADS.get(labelled.task, {})
    other = any(given.get(name, value) != value for name, value in head.items())  # a network that somebody chose
    if not head or other or len(named_in(encoders)) != 1:
        return own
    return {**{name: value for name, value in own.items() if name in DATA}, **head, **USUAL}
