"""The settings of taggers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.tasks.config import LINEAR, FeaturesConfig, TaskConfig

Scheme = Literal["plain", "BIO", "IOB1", "BIOES", "BMES", "BMEWO", "BILOU"]
"""How tags mark spans; plain: they mark none. See `polyseme.tasks.tag_scheme`."""


@dataclass(frozen=True, kw_only=True)
class TaggingConfig(TaskConfig):
    """A tagger."""

    allows_between = True

    column: str | None = setting(
        None,
        "Column of the tags: a number from 0 (-1 is the last), or a name in CoNLL-U, JSON lines and files whose first line has "
        "names.",
        default_text="upos in CoNLL-U, else the last",
        metavar="COLUMN",
        group="Data",
    )
    word_column: str | None = setting(
        None,
        "Column of the words, by number or name as for column.",
        default_text="the one named word, token or form, else the first that does not number the words",
        metavar="COLUMN",
        group="Data",
    )
    scheme: Scheme | None = setting(None, "Tag scheme.", default_text="that of the training data", group="Data")
    document_context: bool = setting(
        False, "Frozen encoders compute the vectors of a sentence with its document as context.", group="Encoders"
    )
    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(layers="all", dropout=0.2))
    network: Literal["lstm", "linear"] = setting(
        "lstm",
        "lstm: word features and a bidirectional LSTM. linear: a layer over the vectors of one encoder, as BERT was published "
        "(no LSTM, CRF, task embeddings or mix, unless given).",
        group="Training",
    )
    hidden_size: int = setting(200, "Units of the LSTM in each direction.", min=1, group="Training")
    layers: int = setting(2, "LSTM layers; 0: none.", min=0, option="network_layers", group="Training")
    dropout: float = setting(0.4, "Dropout probability.", min=0, below=1, group="Training")
    crf: bool = setting(True, "Score the tags of a sentence together with a CRF, not each tag alone.", group="Training")

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        yield from self.between_problems(self.layers)
        if self.document_context and (self.features.mode == "finetune" or self.features.word_features):
            yield f"{arg('document_context', True)} needs {arg('mode', 'frozen')} and no {arg('word_features')}"

    @property
    def is_linear(self) -> bool:
        """Whether tags are scored from one encoder's vectors, by a layer alone."""
        return self.network == LINEAR or (self.layers == 0 and not self.features.words.enabled)
