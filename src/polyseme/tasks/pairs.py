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
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.batch import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.correlation import pearson, spearman
from polyseme.nn.networks.esim import Esim
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import as_text, to_words
from polyseme.tasks.classification import (
    LabelPrediction,
    TextPooling,
    choices,
    distinct_labels,
    gold_labels,
    hidden_layer,
    label_error,
    label_ids,
    plain_text,
    right_counts,
)
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.linear_head import LinearHead, SequenceTask
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.sentence_pair import SentencePairTask
from polyseme.text.labelled.tables import read_usable_rows
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)
SCORE = "score"
"""What stands in labels.txt where the goal is a score."""


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
            hidden_size=config.hidden_size,
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
        if config.is_linear:
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
        columns = {"text": config.text, "second": config.second, "label": config.label}
        options = {"header": config.header, "format": config.format, "strict": config.strict}
        found = []
        for row in read_usable_rows(path, **columns, **options):
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
