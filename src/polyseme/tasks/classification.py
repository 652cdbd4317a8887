"""Text classification: one label for a text. Sentiment, topics, kinds of questions, acceptability.

Three networks: the biattentive one behind the SST row of Peters et al. 2018 (`bcn`), a light one that pools the states of an
LSTM, or the vectors of the words themselves (`pooled`), and an encoder with nothing but a head (`linear`: ULMFiT, GPT, BERT).

Files are tables or sentiment trees (`tables` and `trees` of `polyseme.text.labelled`), whose phrases can be examples too: in
training only, since scores are of whole sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.batch import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.networks.bcn import Bcn
from polyseme.nn.pooling import pool
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import as_text, check_texts, to_words
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.classification_config import TextPooling as Pooling
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.linear_head import LinearHead, SequenceTask
from polyseme.text.labelled.numbered_lines import first_line
from polyseme.text.labelled.tables import read_usable_rows
from polyseme.text.labelled.trees import examples as tree_examples
from polyseme.text.labelled.trees import read_trees
from polyseme.text.words import Splitter

_TREE = re.compile(r"\s*\([0-9]+\s")


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text, as a string to be split or as words, and its label."""

    text: str | list[str]
    label: str | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file on which it begins, for messages."""


@dataclass(frozen=True, slots=True)
class LabelPrediction:
    """A label, and how likely the network holds it and all others to be."""

    label: str
    probability: float
    probabilities: dict[str, float]

    def to_lines(self, asked: str) -> list[str]:
        """The label, its probability and the line."""
        return [f"{self.label}\t{self.probability:.4f}\t{asked}"]

    def to_values(self, asked: str) -> dict[str, Any]:
        return {"text": asked, "label": self.label, "probability": self.probability, "probabilities": self.probabilities}


class TextPooling(nn.Module):
    """The light network's body: the words of texts -> (batch, dim), through LSTM layers or none, by mean, maximum or both.

    Vectors that stand at the output are laid beside the states before pooling.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, *, pooling: Pooling, dropout: float, output_inputs: int = 0
    ) -> None:
        super().__init__()
        self.ways: tuple[Literal["mean", "max"], ...] = ("mean", "max") if pooling == "both" else (pooling,)
        self.recurrent = StackedBiLstm(inputs, hidden, layers, dropout=dropout) if layers else None
        self.dropout = VariationalDropout(dropout)
        self.dim = len(self.ways) * ((self.recurrent.dim if self.recurrent else inputs) + output_inputs)

    def forward(self, text: TextVectors) -> Tensor:
        if self.recurrent is not None:
            states = self.recurrent(text.at_input, text.mask, text.lengths)
        else:
            states = self.dropout(text.at_input)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=2)
        return torch.cat([pool(states, text.mask, way) for way in self.ways], dim=1)


def hidden_layer(inputs: int, hidden: int, outputs: int, dropout: float) -> nn.Sequential:
    """One hidden layer: (batch, inputs) -> (batch, outputs)."""
    return nn.Sequential(
        nn.Dropout(dropout), nn.Linear(inputs, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, outputs)
    )


class _Bcn(nn.Module):
    """The biattentive network, with dropout on what it reads."""

    def __init__(self, config: ClassificationConfig, features: Features, classes: int) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.bcn = Bcn(
            features.width("input"),
            classes,
            hidden_size=config.hidden_size,
            dropout=config.dropout,
            batch_norm=config.batch_norm,
            output_inputs=features.width("output"),
        )

    def forward(self, text: TextVectors) -> Tensor:
        scores: Tensor = self.bcn(self.dropout(text.at_input), text.mask, text.lengths, text.at_output)
        return scores


class Classification(SequenceTask):
    """A classifier of texts; an answer is a `LabelPrediction`."""

    kind = "classification"
    config_type = ClassificationConfig
    config: ClassificationConfig

    def __init__(self, config: ClassificationConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        self._ids = {label: number for number, label in enumerate(self.labels)}
        self.network: nn.Module
        if config.is_linear:
            self.network = LinearHead(
                config.linear_head, features, len(self.labels), texts=1, hidden=config.hidden_size, dropout=config.dropout
            )
        elif config.network == "bcn":
            self.network = _Bcn(config, features, len(self.labels))
        else:
            body = TextPooling(
                features.width("input"),
                config.hidden_size,
                config.layers,
                pooling=config.pooling,
                dropout=config.dropout,
                output_inputs=features.width("output"),
            )
            self.network = nn.Sequential(body, hidden_layer(body.dim, config.hidden_size, len(self.labels), config.dropout))

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """As the config says."""
        return self.config.metric

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[LabelledText]:
        assert isinstance(config, ClassificationConfig)
        if config.format is None and config.text is None and config.label is None and _holds_trees(path):
            trees = read_trees(path)
            learned = {"phrases": config.phrases, "sentence_copies": config.sentence_copies} if training else {}
            phrases = tree_examples(trees, classes=config.classes, **learned)  # type: ignore[arg-type]
            if not phrases:
                raise FormatError(path, "holds neutral sentences only, which 2 classes leave out; give 5 classes")
            return [
                LabelledText(phrase.in_sentence() if config.phrase_context else list(phrase.words), phrase.label)
                for phrase in phrases
            ]
        options = {"header": config.header, "format": config.format, "strict": config.strict}
        rows = read_usable_rows(path, text=config.text, label=config.label, **options)
        if rows[0].second is not None:
            raise UsageError(f"{path} holds pairs of texts: train the task `pairs`, or name the one column to read with text")
        return [LabelledText(row.first, row.label, row.where) for row in rows]

    @classmethod
    def collect_labels(cls, examples: Sequence[LabelledText], config: TaskConfig) -> list[str]:
        return distinct_labels([example.label for example in examples])

    @classmethod
    def example_texts(cls, example: LabelledText, cut: Splitter) -> list[list[str]]:
        return [to_words(example.text, cut)]

    def make_targets(self, examples: Sequence[LabelledText], inputs: list[TextInputs]) -> Tensor:
        return label_ids([example.label for example in examples], self._ids, self.features.device)

    # ---- network

    def losses(self, texts: list[TextVectors], targets: Tensor) -> tuple[Tensor, int]:
        return F.cross_entropy(self.network(texts[0]).float(), targets, reduction="sum"), len(targets)

    def answers(self, texts: list[TextVectors], examples: Sequence[LabelledText]) -> list[LabelPrediction]:
        return choices(self.network(texts[0]), self.labels)

    # ---- answers

    def score(self, examples: Sequence[LabelledText], answers: Sequence[LabelPrediction]) -> dict[str, float]:
        table = self.confusion_matrix(examples, answers)
        return {"accuracy": table.accuracy, "macro_f1": table.macro_f1, "matthews": table.matthews}

    def score_counts(self, examples: Sequence[LabelledText], answers: Sequence[LabelPrediction]) -> np.ndarray | None:
        gold = [example.label for example in examples]
        return right_counts(gold, answers) if self.main_metric == "accuracy" else None

    def predict(self, texts: Sequence[Sentence]) -> list[LabelPrediction]:
        """A label for each text, with the probabilities of all; a string is split into words."""
        return self.answer(self.data([LabelledText(as_text(text)) for text in check_texts(texts)]))

    # ---- errors

    def confusion_matrix(self, examples: Sequence[LabelledText], answers: Sequence[LabelPrediction]) -> Confusion:
        return confusion(gold_labels([example.label for example in examples]), [answer.label for answer in answers])

    def example_errors(
        self, examples: Sequence[LabelledText], answers: Sequence[LabelPrediction], path: str | Path
    ) -> Iterator[ExampleError]:
        """PredictionError labels by their probabilities."""
        for example, answer in zip(examples, answers, strict=True):
            if answer.label != example.label:
                yield label_error(location(path, example.where), plain_text(example.text), example.label, answer)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[LabelledText], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        return unknown_example_labels(examples, labels, path)


def _holds_trees(path: str | Path) -> bool:
    """Whether the first line that is not blank begins with a bracket and a label."""
    return _TREE.match(first_line(path) or "") is not None


# ---- what `pairs` shares


def distinct_labels(labels: Sequence[str | None]) -> list[str]:
    """The classes of training data, sorted; there must be two at least."""
    found = sorted(set(gold_labels(labels)))
    if len(found) < 2:
        raise PolysemeError(f"all {len(labels)} examples have the label {found[0]!r}; a classifier needs two labels or more")
    return found


def gold_labels(labels: Sequence[str | None]) -> list[str]:
    """The same labels, none of them missing."""
    found = [label for label in labels if label is not None]
    if len(found) < len(labels):
        raise UsageError(f"{len(labels) - len(found)} of {len(labels)} examples have no label; training and scores need all")
    return found


def right_counts(labels: Sequence[str | None], answers: Sequence[LabelPrediction]) -> np.ndarray:
    """(examples, 2): whether the answer is right, and 1; their sums are the accuracy's two numbers."""
    pairs = zip(gold_labels(labels), answers, strict=True)
    return np.array([[label == answer.label, 1] for label, answer in pairs], dtype=np.int64).reshape(-1, 2)


def label_error(where: str, text: str, label: str | None, answer: LabelPrediction) -> ExampleError:
    """A label that is not the right one: the surer, the worse."""
    return ExampleError.whole(where, text, str(label), answer.label, answer.probability, probability=answer.probability)


def plain_text(text: Sentence) -> str:
    """A text as a string."""
    return text if isinstance(text, str) else " ".join(text)


def label_ids(labels: Sequence[str | None], ids: dict[str, int], device: torch.device) -> Tensor:
    """Labels as (batch,) numbers on the device."""
    strange = sorted({label for label in gold_labels(labels) if label not in ids})
    if strange:
        raise UsageError(f"the network has no label {strange[0]!r}; it gives {', '.join(ids)}")
    return to_device(torch.tensor([ids[label] for label in gold_labels(labels)]), device)


def choices(scores: Tensor, labels: Sequence[str]) -> list[LabelPrediction]:
    """Scores of classes (batch, classes) -> the likeliest of each row."""
    found: list[LabelPrediction] = []
    rows: list[list[float]] = torch.softmax(scores.double(), dim=1).tolist()
    for row in rows:
        best = max(range(len(row)), key=row.__getitem__)
        found.append(LabelPrediction(labels[best], row[best], dict(zip(labels, row, strict=True))))
    return found
