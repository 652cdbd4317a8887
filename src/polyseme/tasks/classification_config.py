"""The settings of text classification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.tasks.config import FeaturesConfig, SequenceTaskConfig
from polyseme.text.labelled.tables import TableFormat

TextPooling = Literal["mean", "max", "both"]


@dataclass(frozen=True, kw_only=True)
class TableTaskConfig(SequenceTaskConfig):
    """Settings that all tasks on tables of texts and labels share."""

    text: str | None = setting(
        None,
        "Column of the text, by name or number from 0.",
        default_text="a column with a common name",
        metavar="COLUMN",
        group="Data",
    )
    label: str | None = setting(
        None,
        "Column of the label, by name or number from 0.",
        default_text="a column with a common name",
        metavar="COLUMN",
        group="Data",
    )
    header: bool | None = setting(None, "Whether the first row names the columns.", default_text="detected", group="Data")
    format: TableFormat | None = setting(None, "Table format.", default_text="detected", group="Data")
    wide: bool | None = setting(
        None,
        "Add the scores of a linear n-gram model to those of the network. For pairs, its features are n-grams that are in both "
        "texts, and n-grams that are in only one.",
        default_text="yes, unless the network is linear or the data are phrases of trees",
        group="Training",
    )
    wide_dropout: float = setting(
        0.0,
        "Probability of leaving out the n-gram scores of a training example, so that the network does not rely on them.",
        min=0,
        below=1,
        group="Training",
    )
    wide_features: int = setting(0, option=False)
    guessed: tuple[str, ...] = setting((), option=False)
    """Which of `text`, `second`, `label` and `header` are a guess by the training data: other files may have other columns."""

    def with_layout(self, given: Mapping[str, Any]) -> Self:
        """Named columns are no guess, and whether there is a header is then found out anew."""
        guessed = tuple(name for name in self.guessed if name not in given)
        if "header" in guessed and {"text", "second", "label"} & given.keys():
            guessed, given = tuple(name for name in guessed if name != "header"), {"header": None, **given}
        return super().with_layout({**given, "guessed": guessed})

    def with_guess(self, names: Iterable[str]) -> Self:
        return self.replace(guessed=tuple(name for name in ("text", "second", "label", "header") if name in names))


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(TableTaskConfig):
    """A text classifier."""

    classes: Literal[2, 5] = setting(
        5, "Classes of sentiment trees: 5, or 2 without neutral texts.", metavar="2|5", group="Data"
    )
    phrases: Literal["none", "distinct", "all"] = setting(
        "distinct", "Phrases of sentiment trees to train on beside whole sentences.", group="Data"
    )
    sentence_copies: int = setting(
        1, "Copies of each whole sentence among the phrases of sentiment trees.", min=1, group="Data"
    )
    phrase_context: bool = setting(
        False, "Frozen encoders compute the vectors of a phrase of a sentiment tree from its whole sentence.", group="Encoders"
    )
    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(dropout=0.1))
    network: Literal["bcn", "pooled", "linear"] = setting(
        "pooled",
        "pooled: a layer over each word, and pooling. bcn: biattentive classification network. linear: one encoder and a head.",
        group="Training",
    )
    hidden_size: int = setting(200, "Units of an LSTM in each direction, and of hidden layers.", min=1, group="Training")
    layers: int | None = setting(
        None,
        "LSTM layers of pooled; 0: none.",
        min=0,
        option="network_layers",
        default_text="1 from 6,000 training examples on, else 0",
        group="Training",
    )
    word_layer: int | None = setting(
        None,
        "Units of a layer over each word vector of pooled, before LSTM layers or pooling; 0: none.",
        min=0,
        default_text="the hidden size",
        group="Training",
    )
    pooling: TextPooling = setting("both", "Pooling of pooled: mean, maximum, or both concatenated.", group="Training")
    dropout: float = setting(0.1, "Dropout probability.", min=0, below=1, group="Training")
    batch_norm: bool = setting(False, "Batch norm in the maxout layers of bcn (McCann et al. 2017).", group="Training")
    metric: Literal["accuracy", "macro_f1", "matthews"] = setting(
        "accuracy", "Metric that chooses the best network.", group="Training"
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.phrase_context and (self.features.mode == "finetune" or self.is_linear):
            yield f"{arg('phrase_context', True)} needs frozen encoders and a network other than linear"
