"""What `import polyseme` offers: names and where they are defined, and the overloads of functions that take settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from polyseme.base.config import Config

HOMES = {
    "Corpus": "polyseme.text.corpus:Corpus",
    "Elmo": "polyseme.encoders.elmo:Elmo",
    "ElmoConfig": "polyseme.encoders.elmo_config:ElmoConfig",
    "Encoder": "polyseme.encoders.base:Encoder",
    "Mix": "polyseme.nn.mix:Mix",
    "PolysemeError": "polyseme.base.errors:PolysemeError",
    "Task": "polyseme.tasks.base:Task",
    "adapt": "polyseme.api.training:adapt",
    "analogy": "polyseme.api.words:analogy",
    "compare": "polyseme.api.studies:compare",
    "convert": "polyseme.api.models:convert",
    "embed_file": "polyseme.api.embedding:embed_file",
    "evaluate": "polyseme.api.tasks:evaluate",
    "info": "polyseme.api.models:info",
    "lineage": "polyseme.api.studies:lineage",
    "load": "polyseme.api.models:load",
    "load_task": "polyseme.api.tasks:load_task",
    "neighbors": "polyseme.api.words:neighbours",
    "neighbours": "polyseme.api.words:neighbours",
    "perplexity": "polyseme.api.language:perplexity",
    "predict": "polyseme.api.tasks:predict",
    "pretrain": "polyseme.api.training:pretrain",
    "probe": "polyseme.api.probing:probe",
    "score": "polyseme.api.language:score",
    "similar": "polyseme.api.words:similar",
    "substitutes": "polyseme.api.language:substitutes",
    "train": "polyseme.api.tasks:train",
    "verify": "polyseme.api.models:verify",
}
"""By public name: `module:attribute`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """One signature of a function that takes settings: of one task, or of one method."""

    function: Callable[..., Any]
    configs: Mapping[str, Config]
    """Whose settings are its keyword arguments."""
    returns: str
    """`module:Class` of the result."""
    literals: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Types of parameters that differ from the function's: the names of the task."""


def overloads() -> dict[str, list[Variant]]:
    """The functions that take settings, with their signatures."""
    return {}
