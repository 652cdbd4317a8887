"""What classification and sentence pairs share: tables of labelled texts, labels as numbers, predicted labels, and pooling."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.nn.dropout import Dropout, VariationalDropout
from polyseme.nn.pooling import pool
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.tasks.classification_config import ClassificationConfig, TableTaskConfig
from polyseme.tasks.error_analysis import ExampleError
from polyseme.tasks.features import Features, TextVectors
from polyseme.tasks.label_checks import own_labels
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import LabelPrediction
from polyseme.text.labelled.tables import TableRow, first_labels, guessed_columns, read_usable_rows
from polyseme.text.labelled.trained_columns import columns_of_file


def read_labelled_rows(path: str | Path, config: TableTaskConfig, known: Collection[str] = ()) -> list[TableRow]:
    """Read the rows of a table as the config says; columns that were guessed in training may have other names here.

    `known`: the labels of the training data.
    """
    return read_usable_rows(path, **columns_of_file(path, _columns(config), config.guessed), known=known)


def refuse_own_labels(path: str | Path, config: TableTaskConfig, labels: Sequence[str | None]) -> None:
    """Raise an error if (nearly) every row has a label of its own, such as an id; it names the column that may be the label."""
    if not (problem := own_labels(labels)):
        return
    try:
        other, found = first_labels(path, **{**_columns(config), "label": None})
    except PolysemeError:
        other, found = "", []
    if not other or own_labels(found) or set(found) <= set(labels):
        other = ""
    advice = f"{other!r} looks like the label: give {arg('label', other)}" if other else f"name the label's with {arg('label')}"
    raise FormatError(path, f"{problem}: the column seems to be one of ids or texts; {advice}")


def guessed_data_options(path: str | Path, config: TableTaskConfig) -> dict[str, Any]:
    """Return the columns of a table as settings, if they are guessed by its content; else none."""
    return guessed_columns(path, **_columns(config))


def first_data_labels(path: str | Path, config: TableTaskConfig, options: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the label's column and the first labels of a table, whose columns are settings, or else among the options."""
    return first_labels(path, **_columns(config.replace(**options)))


def _columns(config: TableTaskConfig) -> dict[str, Any]:
    columns = {"text": config.text, "second": getattr(config, "second", None), "label": config.label}
    return columns | {
        "header": config.header,
        "format": config.format,
        "strict": config.strict,
        "pairs": isinstance(config, PairsConfig),
    }


# ---- labels


def distinct_labels(labels: Sequence[str | None]) -> list[str]:
    """Return the classes of training data, sorted; at least two."""
    found = sorted(set(gold_labels(labels)))
    if len(found) < 2:
        raise PolysemeError(f"all {len(labels)} examples have the label {found[0]!r}; a classifier needs two labels or more")
    return found


def gold_labels(labels: Sequence[str | None]) -> list[str]:
    """Return the labels; refuse examples without one."""
    found = [label for label in labels if label is not None]
    if len(found) < len(labels):
        raise UsageError(f"{len(labels) - len(found)} of {len(labels)} examples have no label; training and scores need all")
    return found


def label_numbers(labels: Sequence[str | None], known: Sequence[str]) -> np.ndarray:
    """Return labels as (examples,) numbers."""
    ids = {label: number for number, label in enumerate(known)}
    unknown = sorted({label for label in gold_labels(labels) if label not in ids})
    if unknown:
        raise UsageError(f"the network has no label {unknown[0]!r}; it predicts {', '.join(ids)}")
    return np.array([ids[label] for label in gold_labels(labels)], dtype=np.int64)


def label_predictions(scores: Tensor, labels: Sequence[str]) -> list[LabelPrediction]:
    """Return the most probable label of each row of scores (batch, classes)."""
    found: list[LabelPrediction] = []
    rows: list[list[float]] = torch.softmax(scores.double(), dim=1).tolist()
    for row in rows:
        best = max(range(len(row)), key=row.__getitem__)
        found.append(LabelPrediction(labels[best], row[best], dict(zip(labels, row, strict=True))))
    return found


def right_counts(labels: Sequence[str | None], predictions: Sequence[LabelPrediction]) -> np.ndarray:
    """Return (examples, 2): whether the prediction is right, and 1; their sums are the accuracy's two numbers."""
    pairs = zip(gold_labels(labels), predictions, strict=True)
    return np.array([[label == each.label, 1] for label, each in pairs], dtype=np.int64).reshape(-1, 2)


def label_error(where: str, text: str, label: str | None, prediction: LabelPrediction) -> ExampleError:
    """A wrong label: the more confident, the worse."""
    sure = prediction.probability
    return ExampleError.single(where, text, str(label), prediction.label, sure, probability=sure)


# ---- networks


class TextPooler(nn.Module):
    """Pools texts to vectors (batch, dim), through a layer over each word and LSTM layers or none, by mean, maximum or both.

    Vectors at the output are concatenated to the states before pooling.
    """

    def __init__(self, config: ClassificationConfig | PairsConfig, features: Features) -> None:
        super().__init__()
        inputs = features.width("input")
        self.word_layer = None
        if units := getattr(config, "word_layer", None):
            self.word_layer = nn.Sequential(Dropout(config.dropout), nn.Linear(inputs, units), nn.ReLU())
            inputs = units
        self.poolings = ("mean", "max") if config.pooling == "both" else (config.pooling,)
        self.recurrent = None
        if config.layers:
            self.recurrent = StackedBiLstm(inputs, config.hidden_size, config.layers, dropout=config.dropout)
        self.dropout = VariationalDropout(config.dropout)
        self.dim = len(self.poolings) * ((self.recurrent.dim if self.recurrent else inputs) + features.width("output"))

    def forward(self, text: TextVectors) -> Tensor:
        states = text.at_input if self.word_layer is None else self.word_layer(text.at_input)
        if self.recurrent is not None:
            states = self.recurrent(states, text.mask, text.lengths)
        elif self.word_layer is None:
            states = self.dropout(states)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=2)
        return torch.cat([pool(states, text.mask, how) for how in self.poolings], dim=1)  # type: ignore[arg-type]


def hidden_layer(inputs: int, hidden_size: int, outputs: int, dropout: float) -> nn.Sequential:
    """Return a network with one hidden layer: (batch, inputs) -> (batch, outputs)."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(inputs, hidden_size), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden_size, outputs)
    )
