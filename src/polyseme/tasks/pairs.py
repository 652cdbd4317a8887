"""Pairs of texts: does the first entail the second, do they say the same, how alike are they, is this the answer?

Three networks: ESIM, behind the SNLI row of Peters et al. 2018 (`esim`), a light one that makes one vector of each text and
compares them, [u; v; |u - v|; u * v] as in InferSent (Conneau et al. 2017) (`siamese`), and an encoder that reads both texts
together, with nothing but a head (`linear`: GPT, BERT). The goal is a class, or a score:
a number that is learned by squared error, as a share of the way from the training data's lowest score to its highest, and
given back in the data's own numbers. It may lie a little outside their range; cut off, it would lose the order there.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.base import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.correlation import pearson, spearman
from polyseme.nn.networks.esim import Esim
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import TaskConfig, as_text, to_words
from polyseme.tasks.classification import (
    LabelPrediction,
    Pooling,
    TextPooling,
    choices,
    column,
    common_problems,
    distinct_labels,
    gold_labels,
    hidden_layer,
    label_error,
    label_ids,
    plain_text,
    right_counts,
    warn_skipped,
)
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.linear_head import LINEAR, LinearHead, SequenceTask, SequenceTaskConfig
from polyseme.tasks.sentence_pair import SentencePairTask
from polyseme.text.labelled.tables import TableFormat, read_table
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)
SCORE = "score"
"""What stands in labels.txt where the goal is a score."""


@dataclass(frozen=True, kw_only=True)
class PairsConfig(SequenceTaskConfig):
    """A judge of pairs of texts."""

    network: Literal["esim", "siamese", "linear"] = "esim"
    """ESIM, in which the texts look at each other; a light one: a vector of each text, compared by one hidden layer; or one
    encoder and a head (`polyseme.tasks.linear_head`)."""
    both_orders: bool = False
    """Of `linear`: read each pair in both orders and add their vectors, as GPT has it for similarity, which has no order."""
    goal: Literal["classes", "score"] = "classes"
    """A label for each pair, or a number."""
    hidden_size: int = 300
    """Units of an LSTM in each direction, and of the hidden layer."""
    layers: int = 1
    """LSTM layers of `siamese`, the same for both texts; 0: the words' own vectors are pooled."""
    pooling: Pooling = "both"
    """How `siamese` makes one vector of many: their mean, their maximum, or both side by side."""
    dropout: float = 0.5
    """On the network's input and between its parts."""
    metric: Literal["accuracy", "macro_f1", "f1", "pearson", "spearman"] | None = None
    """The score by which the best network is chosen; None: accuracy, and pearson for scores."""
    positive_label: str | None = None
    """With two classes, the one that `f1` is of; None: the last in order that does not begin with "not" or "non"."""
    min_score: float | None = None
    """The score that the network learns as 0; None: the training data's lowest."""
    max_score: float | None = None
    """The score that it learns as 1; None: the training data's highest."""
    text: str | None = None
    """The column of the first text: a name, or a number from 0; None: columns with well-known names."""
    second: str | None = None
    """The column of the second text, likewise; given together with `text`."""
    label: str | None = None
    """The column of the label or the score, likewise."""
    header: bool | None = None
    """Whether the first row names the columns; None: told by its content."""
    format: TableFormat | None = None
    """The kind of table: tsv, csv, jsonl or lines; None: told by content."""
    strict: bool = True
    """Whether a row without a text, or longer than the others, is an error."""

    def __post_init__(self) -> None:
        problems = common_problems(self, self.hidden_size, self.layers, self.dropout)
        problems += self.head_problems(self.network == LINEAR)
        if self.both_orders and self.network != LINEAR:
            problems.append(f"both_orders is of the network 'linear', and this one is {self.network!r}; leave it out")
        of_scores = ("pearson", "spearman")
        if self.metric is not None and (self.metric in of_scores) != (self.goal == "score"):
            problems.append(f"main is {self.metric!r}, but the goal is {self.goal!r}; pearson and spearman are of scores")
        if self.positive_label is not None and self.goal == "score":
            problems.append(f"positive is {self.positive_label!r}, but the goal is 'score'; leave it out")
        if self.goal == "classes" and (self.min_score is not None or self.max_score is not None):
            problems.append("low and high are given, but the goal is 'classes'; leave them out, or give goal 'score'")
        if self.min_score is not None and self.max_score is not None and not self.min_score < self.max_score:
            problems.append(f"low is {self.min_score} and high {self.max_score}; low must be below high")
        if (self.text is None) != (self.second is None):
            problems.append("text and second are two columns; give both, or none")
        if problems:
            raise ConfigError("; ".join(problems))


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, each a string to be split or words, and their label; a score is written as in its file."""

    first: str | list[str]
    second: str | list[str]
    label: str | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file on which it begins, for messages."""


@dataclass(frozen=True, slots=True)
class Score:
    """A number, in the range of the training data's."""

    score: float

    def to_lines(self, asked: str) -> list[str]:
        """The score and the line."""
        return [f"{self.score:.4f}\t{asked}"]

    def to_values(self, asked: str) -> dict[str, Any]:
        return {"text": asked, "score": self.score}


class _Esim(nn.Module):
    """Two texts -> (batch, outputs)."""

    def __init__(self, config: PairsConfig, features: Features, outputs: int) -> None:
        super().__init__()
        self.esim = Esim(
            features.width("input"),
            outputs,
            hidden=config.hidden_size,
            dropout=config.dropout,
            output_inputs=features.width("output"),
        )

    def forward(self, a: TextVectors, b: TextVectors) -> Tensor:
        at_output = None if a.at_output is None or b.at_output is None else (a.at_output, b.at_output)
        scores: Tensor = self.esim((a.at_input, b.at_input), (a.mask, b.mask), (a.lengths, b.lengths), at_output)
        return scores


class _Siamese(nn.Module):
    """Two texts -> (batch, outputs), each through the same layers."""

    def __init__(self, config: PairsConfig, features: Features, outputs: int) -> None:
        super().__init__()
        self.body = TextPooling(
            features.width("input"),
            config.hidden_size,
            config.layers,
            pooling=config.pooling,
            dropout=config.dropout,
            output_inputs=features.width("output"),
        )
        self.compare = hidden_layer(4 * self.body.dim, config.hidden_size, outputs, config.dropout)

    def forward(self, a: TextVectors, b: TextVectors) -> Tensor:
        u, v = self.body(a), self.body(b)
        scores: Tensor = self.compare(torch.cat([u, v, (u - v).abs(), u * v], dim=1))
        return scores


class Pairs(SequenceTask, SentencePairTask):
    """A judge of pairs; an answer is a `LabelPrediction`, or a `Score` where the goal is one."""

    kind = "pairs"
    wants = "judges pairs"
    config_type = PairsConfig
    config: PairsConfig

    def __init__(self, config: PairsConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        self._ids = {label: number for number, label in enumerate(self.labels)}
        outputs = len(self.labels)  # a score is one number, and has one label
        self.network: nn.Module
        if config.network == LINEAR:
            self.network = LinearHead(
                config.linear_head,
                features,
                outputs,
                texts=2,
                hidden=config.hidden_size,
                dropout=config.dropout,
                both_orders=config.both_orders,
            )
        else:
            self.network = (_Esim if config.network == "esim" else _Siamese)(config, features, outputs)

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """As the config says, else accuracy, and Pearson's correlation for scores."""
        return self.config.metric or ("accuracy" if self.config.goal == "classes" else "pearson")

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[LabelledPair]:
        assert isinstance(config, PairsConfig)
        table = read_table(
            path,
            text=column(config.text),
            second=column(config.second),
            label=column(config.label),
            header=config.header,
            kind=config.format,
            strict=config.strict,
        )
        warn_skipped(path, table.skipped, len(table.rows))
        found = []
        for row in table.rows:
            if row.second is None:
                raise UsageError(
                    f"{path} has one text a row: name the two columns with text and second, or train `classification`"
                )
            if config.goal == "score" and _number(row.label) is None:
                what = f"has the label {row.label!r}, and the goal 'score' needs a number"
                raise FormatError(f"{path}:{row.where}", f"{what}; name another column with label, or give goal 'classes'")
            found.append(LabelledPair(row.first, row.second, row.label, row.where))
        return found

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[LabelledPair]) -> PairsConfig:
        config = super().resolve_defaults(config, examples)
        assert isinstance(config, PairsConfig)
        labels = gold_labels([example.label for example in examples])
        return _resolve_scores(config, labels) if config.goal == "score" else _resolve_classes(config, labels)

    @classmethod
    def min_dev_examples(cls, config: TaskConfig) -> int:
        assert isinstance(config, PairsConfig)
        return 2 if config.goal == "score" else 1  # a correlation needs two

    @classmethod
    def collect_labels(cls, examples: Sequence[LabelledPair], config: TaskConfig) -> list[str]:
        assert isinstance(config, PairsConfig)
        return [SCORE] if config.goal == "score" else distinct_labels([example.label for example in examples])

    @classmethod
    def example_texts(cls, example: LabelledPair, cut: Splitter) -> list[list[str]]:
        return [to_words(example.first, cut), to_words(example.second, cut)]

    def make_targets(self, examples: Sequence[LabelledPair], inputs: list[TextInputs]) -> Tensor:
        labels = [example.label for example in examples]
        if self.config.goal == "classes":
            return label_ids(labels, self._ids, self.features.device)
        low, high = self._range
        shares = [(number - low) / (high - low) for number in _numbers(labels)]
        return to_device(torch.tensor(shares, dtype=torch.float32), self.features.device)

    @property
    def _range(self) -> tuple[float, float]:
        """The scores that the network learns as 0 and 1."""
        assert self.config.min_score is not None and self.config.max_score is not None
        return self.config.min_score, self.config.max_score

    # ---- network

    def losses(self, texts: list[TextVectors], targets: Tensor) -> tuple[Tensor, int]:
        scores = self.network(*texts).float()
        if self.config.goal == "score":
            return F.mse_loss(scores.squeeze(1), targets, reduction="sum"), len(targets)
        return F.cross_entropy(scores, targets, reduction="sum"), len(targets)

    def answers(self, texts: list[TextVectors], examples: Sequence[LabelledPair]) -> list[LabelPrediction] | list[Score]:
        scores = self.network(*texts)
        if self.config.goal == "classes":
            return choices(scores, self.labels)
        low, high = self._range
        return [Score(low + share * (high - low)) for share in scores.squeeze(1).double().tolist()]

    # ---- answers

    def score(self, examples: Sequence[LabelledPair], answers: Sequence[LabelPrediction] | Sequence[Score]) -> dict[str, float]:
        table = self.confusion_matrix(examples, answers)
        if table is None:
            gold = _numbers([example.label for example in examples])
            found = [answer.score for answer in answers if isinstance(answer, Score)]
            if len(gold) < 2:
                raise UsageError(f"{len(gold)} pair cannot be scored: a correlation needs two or more")
            both = {"pearson": pearson(gold, found), "spearman": spearman(gold, found)}
            return {name: 0.0 if math.isnan(value) else value for name, value in both.items()}  # the same answer for all
        scores = {"accuracy": table.accuracy, "macro_f1": table.macro_f1}
        if self.config.positive_label is not None:
            of_it = table.classes.get(self.config.positive_label)  # neither in the truth nor in the answers: nothing was found
            scores["f1"] = of_it.f1 if of_it is not None else 0.0
        return scores

    def score_counts(
        self, examples: Sequence[LabelledPair], answers: Sequence[LabelPrediction] | Sequence[Score]
    ) -> np.ndarray | None:
        chosen = [answer for answer in answers if isinstance(answer, LabelPrediction)]
        if self.main_metric == "accuracy":
            return right_counts([example.label for example in examples], chosen)
        if self.main_metric == "f1":  # right, answered and wanted, of the positive class
            gold, found = ([each.label == self.config.positive_label for each in some] for some in (examples, chosen))
            return np.array([[a and b, b, a] for a, b in zip(gold, found, strict=True)], dtype=np.int64).reshape(-1, 3)
        return None

    def predict(self, pairs: Sequence[tuple[Sentence, Sentence]]) -> list[LabelPrediction] | list[Score]:
        """An answer for each pair of texts; a string is split into words."""
        found = []
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
                raise UsageError(f"expected pairs of texts, such as ('It rains.', 'It is wet.'); got {pair!r}")
            found.append(LabelledPair(as_text(pair[0]), as_text(pair[1])))
        return self.answer(self.data(found))

    # ---- errors

    def confusion_matrix(
        self, examples: Sequence[LabelledPair], answers: Sequence[LabelPrediction | Score]
    ) -> Confusion | None:
        """Of labels; scores have none."""
        if self.config.goal == "score":
            return None
        chosen = [answer.label for answer in answers if isinstance(answer, LabelPrediction)]
        return confusion(gold_labels([example.label for example in examples]), chosen)

    def example_errors(
        self, examples: Sequence[LabelledPair], answers: Sequence[LabelPrediction | Score], path: str | Path
    ) -> Iterator[ExampleError]:
        """PredictionError labels by their probabilities, scores by how far they are off."""
        for example, answer in zip(examples, answers, strict=True):
            where, text = location(path, example.where), f"{plain_text(example.first)} | {plain_text(example.second)}"
            if isinstance(answer, Score):
                off = abs(answer.score - float(str(example.label)))
                yield ExampleError.whole(where, text, str(example.label), f"{answer.score:.3f}", off)
            elif answer.label != example.label:
                yield label_error(where, text, example.label, answer)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[LabelledPair], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        assert isinstance(config, PairsConfig)
        return [] if config.goal == "score" else unknown_example_labels(examples, labels, path)


def _resolve_classes(config: PairsConfig, labels: Sequence[str]) -> PairsConfig:
    """With two classes, which of them is the positive one."""
    distinct = distinct_labels(labels)
    if any("." in label and _number(label) is not None for label in distinct):
        _log.warning("the labels look like scores (%s ...); for these, give goal 'score'", ", ".join(distinct[:3]))
    if config.metric == "f1" and len(distinct) > 2:
        raise ConfigError(f"main is 'f1', which is of two classes; the training data has {len(distinct)}: give macro_f1")
    if config.positive_label is not None and (len(distinct) > 2 or config.positive_label not in distinct):
        raise ConfigError(f"positive_label is {config.positive_label!r}; give one of {', '.join(distinct)}")
    if config.positive_label is not None or len(distinct) > 2:
        return config
    plain = [label for label in distinct if not label.lower().startswith(("not", "non"))]
    return config.replace(positive_label=(plain or distinct)[-1])


def _resolve_scores(config: PairsConfig, labels: Sequence[str]) -> PairsConfig:
    """From which score to which the network learns."""
    numbers = _numbers(labels)
    low = min(numbers) if config.min_score is None else config.min_score
    high = max(numbers) if config.max_score is None else config.max_score
    if not low < high:
        raise PolysemeError(f"the scores of the training data go from {low} to {high}; there is nothing to tell apart")
    return config.replace(min_score=low, max_score=high)


def _number(label: str | None) -> float | None:
    """A label as a finite number; None where it is none."""
    try:
        number = float(label) if label is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _numbers(labels: Sequence[str | None]) -> list[float]:
    """All labels as numbers."""
    found = []
    for label in gold_labels(labels):
        number = _number(label)
        if number is None:
            raise UsageError(f"the label {label!r} is no number, which the goal 'score' needs; give numbers, or goal 'classes'")
        found.append(number)
    return found
