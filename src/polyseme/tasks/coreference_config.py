"""The settings of coreference resolution."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import setting
from polyseme.tasks.config import FeaturesConfig, TaskConfig


@dataclass(frozen=True, kw_only=True)
class CoreferenceConfig(TaskConfig):
    """A span-ranking network for coreference (Lee et al. 2018)."""

    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(norm="bilm", dropout=0.2))
    singletons: bool = setting(False, "Find and score entities that are mentioned once; OntoNotes has none.", group="Data")
    max_span_width: int = setting(20, "Maximum number of words of a mention.", min=1, metavar="WORDS", group="Data")
    sentence_splitter: Literal["english", "chinese", "lines"] | None = setting(
        None, "How new text is split into sentences.", default_text="by the training data", group="Text"
    )
    mention_loss: bool = setting(
        False, "Add a loss for finding mentions; helps with tiny data. Always on with singletons.", group="Training"
    )
    hidden_size: int = setting(200, "Units of the LSTM in each direction.", min=1, group="Training")
    layers: int = setting(1, "LSTM layers.", min=1, option="network_layers", group="Training")
    dropout: float = setting(0.3, "Dropout probability of the LSTM.", min=0, below=1, group="Training")
    scorer_size: int = setting(150, "Units of the layers that score spans and pairs of spans.", min=1, group="Training")
    scorer_dropout: float = setting(0.2, "Dropout probability of these layers.", min=0, below=1, group="Training")
    feature_dim: int = setting(20, "Size of the vectors of widths, distances and speakers.", min=1, group="Training")
    spans_per_word: float = setting(0.4, "Spans to keep, as a multiple of the number of words.", above=0, group="Training")
    max_antecedents: int = setting(50, "Maximum number of antecedents to compare each span with.", min=1, group="Training")
    max_training_sentences: int = setting(
        50, "Sentences of a document in a training step; predictions use whole documents.", min=1, group="Training"
    )
    truncation: Literal["random", "first"] = setting(
        "random", "Sentences of longer documents to train on: a random window, or the first ones.", group="Training"
    )
