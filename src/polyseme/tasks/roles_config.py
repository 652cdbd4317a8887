"""The settings of semantic role labelling."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from polyseme.base.config import setting
from polyseme.tasks.config import FeaturesConfig
from polyseme.tasks.tagging_config import Scheme, TaggingConfig


@dataclass(frozen=True, kw_only=True)
class RolesConfig(TaggingConfig):
    """A semantic role labeller: a tagger that knows the predicate."""

    allows_between = False

    column: str | None = setting(None, option=False)
    scheme: Scheme | None = setting("BIO", option=False)
    document_context: bool = setting(False, option=False)
    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(norm="bilm", dropout=0.2))
    hidden_size: int = setting(300, "Units of each LSTM layer.", min=1, group="Training")
    layers: int = setting(4, "LSTM layers, in turn forward and backward.", min=1, option="network_layers", group="Training")
    dropout: float = setting(0.1, "Dropout probability.", min=0, below=1, group="Training")
    crf: bool = setting(
        False, "Learn transition scores with a CRF; without it, transitions are only allowed or not.", group="Training"
    )
    predicate_dim: int = setting(100, "Size of the vector that marks the predicate.", min=1, group="Training")

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.column is not None or self.scheme != "BIO" or self.document_context:
            yield "column, scheme and document_context do not apply to roles: omit them"
