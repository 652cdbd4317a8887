"""Sentence pairs: entailment, paraphrase, similarity, answer selection.

Three networks: ESIM, behind the SNLI row of Peters et al. 2018 (`esim`), a light one that compares one vector of each text,
[u; v; |u - v|; u * v] as in InferSent (Conneau et al. 2017) (`siamese`), and an encoder that reads both texts as one sequence,
with a head (`linear`: GPT, BERT). The goal is a class or a score. A score is trained by squared error, scaled so that the
training data's lowest is 0 and its highest 1, and predicted on the data's own scale. It may lie slightly outside the range:
clipping would lose the order there.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Hashable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.batch import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.correlation import pearson, spearman
from polyseme.nn.networks.esim import Esim
from polyseme.tasks.base import as_text, joined, to_words
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextVectors
from polyseme.tasks.label_checks import label_problems, merge_spellings
from polyseme.tasks.labels import (
    TextPooler,
    distinct_labels,
    first_data_labels,
    gold_labels,
    guessed_data_options,
    hidden_layer,
    label_error,
    label_numbers,
    label_predictions,
    read_labelled_rows,
    refuse_own_labels,
    right_counts,
)
from polyseme.tasks.linear_head import LinearHead, SequenceLayout
from polyseme.tasks.pairs_config import PairsConfig
from polyseme.tasks.predictions import LabelPrediction, Predictions, ScorePrediction, with_lines
from polyseme.tasks.sentence_pair import SentencePairTask
from polyseme.tasks.splits import quantiles, same_text
from polyseme.tasks.wide import Texts
from polyseme.tasks.wide_task import WideTargets, WideTask
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.column_content import with_decimal_point
from polyseme.text.labelled.column_names import SCORES
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)
SCORE = "score"
"""The only label where the goal is a score."""
PairPrediction = LabelPrediction | ScorePrediction


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """Two texts, each a string to be split or words, and their label; a score is written as in its file."""

    first: str | list[str]
    second: str | list[str]
    label: str | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file on which it begins, for messages."""


class _Esim(nn.Module):
    """ESIM: two texts -> (batch, outputs)."""

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
        self.body = TextPooler(config, features)
        self.compare = hidden_layer(4 * self.body.dim, config.hidden_size, outputs, config.dropout)

    def forward(self, a: TextVectors, b: TextVectors) -> Tensor:
        u, v = self.body(a), self.body(b)
        scores: Tensor = self.compare(torch.cat([u, v, (u - v).abs(), u * v], dim=1))
        return scores


class Pairs(WideTask, SentencePairTask):
    """A classifier or regressor of sentence pairs; an output is a `LabelPrediction` or a `ScorePrediction`."""

    kind = "pairs"
    pair_description = "pairs of texts"
    config_type = PairsConfig
    config: PairsConfig

    def __init__(self, config: PairsConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        outputs = len(self.labels)  # a score is one number, and has one label
        self.network: nn.Module
        if config.is_linear:
            self.network = LinearHead(
                config.linear_head,
                features,
                outputs,
                layout=SequenceLayout(texts=2, both_orders=config.both_orders),
                hidden_size=config.hidden_size,
                dropout=config.dropout,
            )
        else:
            self.network = (_Esim if config.network == "esim" else _Siamese)(config, features, outputs)

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """The metric of the config; by default accuracy, and Pearson's correlation for scores."""
        return self.config.metric or ("accuracy" if self.config.goal == "classes" else "pearson")

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[LabelledPair]:
        assert isinstance(config, PairsConfig)
        pairs, bad = [], BadRows(path, strict=config.strict)
        for row in read_labelled_rows(path, config):
            if row.second is None:
                columns = f"{arg('text')} and {arg('second')}"
                raise UsageError(f"{path} has one text per row: name two columns with {columns}, or train `classification`")
            if config.goal == "score" and _number(row.label) is None:
                what = f"has the label {row.label!r}, and {arg('goal', 'score')} needs a number"
                hint = f"name another column with {arg('label')}, or give {arg('goal', 'classes')}"
                bad.add(row.where, "whose label is no number", f"{what}; {hint}")
            else:
                label = row.label if config.goal == "classes" or row.label is None else with_decimal_point(row.label)
                pairs.append(LabelledPair(row.first, row.second, label, row.where))
        bad.finish(len(pairs))
        if training and config.goal == "classes":
            refuse_own_labels(path, config, [each.label for each in pairs])
        return pairs

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
    def guessed_options(cls, path: str | Path, config: TaskConfig, given: Collection[str] = ()) -> dict[str, Any]:
        assert isinstance(config, PairsConfig)
        options = guessed_data_options(path, config)
        if "goal" in given or config.goal != "classes":
            return options
        column, labels = first_data_labels(path, config, options)
        if _are_scores(labels):
            shown = ", ".join(list(dict.fromkeys(labels))[:3])
            _log.warning("%s: the labels are numbers (%s ...), so the goal is a score (%s)", path, shown, arg("goal", "score"))
            options["goal"] = "score"
        elif column.lower() in SCORES and (count := len(set(labels))) > 2 and None not in map(_number, labels):
            what = f"the whole numbers of column {column!r} are {count} classes"
            _log.warning("%s: %s; %s learns them as numbers", path, what, arg("goal", "score"))
        return options

    @classmethod
    def merge_labels(
        cls, examples: Sequence[LabelledPair], config: TaskConfig, known: Sequence[str] | None = None
    ) -> tuple[list[LabelledPair], dict[str, str]]:
        assert isinstance(config, PairsConfig)
        return merge_spellings(examples, known, strict=config.strict or config.goal == "score")

    @classmethod
    def data_problems(cls, examples: Sequence[LabelledPair], config: TaskConfig) -> list[str]:
        assert isinstance(config, PairsConfig)
        texts = [same_text(each.first, each.second) for each in examples]
        labels, lines = [each.label for each in examples], [each.where for each in examples]
        return label_problems(texts, labels, classes=config.goal == "classes", lines=lines)

    @classmethod
    def split_groups(cls, examples: Sequence[LabelledPair], config: TaskConfig) -> list[list[Hashable]]:
        first = [same_text(example.first) for example in examples]
        return [first, [same_text(example.first, example.second) for example in examples]]

    @classmethod
    def split_strata(cls, examples: Sequence[LabelledPair], config: TaskConfig) -> list[Hashable]:
        assert isinstance(config, PairsConfig)
        labels = [example.label for example in examples]
        return list(labels) if config.goal == "classes" else quantiles(_numbers(labels))

    @classmethod
    def collect_labels(cls, examples: Sequence[LabelledPair], config: TaskConfig) -> list[str]:
        assert isinstance(config, PairsConfig)
        return [SCORE] if config.goal == "score" else distinct_labels([example.label for example in examples])

    @classmethod
    def example_texts(cls, example: LabelledPair, splitter: Splitter) -> list[list[str]]:
        return [to_words(example.first, splitter), to_words(example.second, splitter)]

    @classmethod
    def wide_texts(cls, example: LabelledPair) -> Texts:
        return example.first, example.second

    @classmethod
    def target_values(cls, examples: Sequence[LabelledPair], labels: Sequence[str], config: PairsConfig) -> np.ndarray:
        given = [example.label for example in examples]
        if config.goal == "classes":
            return label_numbers(given, labels)
        assert config.min_score is not None and config.max_score is not None
        return ((np.array(_numbers(given)) - config.min_score) / (config.max_score - config.min_score)).astype(np.float32)

    @property
    def _range(self) -> tuple[float, float]:
        """The scores that the network learns as 0 and 1."""
        assert self.config.min_score is not None and self.config.max_score is not None
        return self.config.min_score, self.config.max_score

    # ---- network

    def summed_loss(self, texts: list[TextVectors], targets: WideTargets) -> tuple[Tensor, int]:
        scores = self.add_wide(self.network(*texts), targets.wide)
        if self.config.goal == "score":
            return F.mse_loss(scores.squeeze(1), targets.values, reduction="sum"), len(targets.values)
        return F.cross_entropy(scores, targets.values, reduction="sum"), len(targets.values)

    def decode(
        self, texts: list[TextVectors], examples: Sequence[LabelledPair]
    ) -> list[LabelPrediction] | list[ScorePrediction]:
        return self.to_predictions(self.scores(texts, examples))

    def to_predictions(self, scores: Tensor) -> list[LabelPrediction] | list[ScorePrediction]:
        if self.config.goal == "classes":
            return label_predictions(scores, self.labels)
        low, high = self._range
        return [ScorePrediction(low + scaled * (high - low)) for scaled in scores.squeeze(1).double().tolist()]

    def majority_outputs(self, train: Sequence[LabelledPair], examples: Sequence[LabelledPair]) -> list[PairPrediction]:
        if self.config.goal == "classes":
            return super().majority_outputs(train, examples)
        mean = ScorePrediction(float(np.mean(_numbers([example.label for example in train]))))
        return [mean for _ in examples]

    # ---- predictions

    def score(self, examples: Sequence[LabelledPair], outputs: Sequence[PairPrediction]) -> dict[str, float]:
        table = self.confusion_matrix(examples, outputs)
        if table is None:
            return self._correlations(examples, outputs)
        scores = {"accuracy": table.accuracy, "macro_f1": table.macro_f1}
        if self.config.positive_label is not None:
            positive = table.classes.get(self.config.positive_label)  # None: neither gold nor predicted
            scores["f1"] = positive.f1 if positive is not None else 0.0
        return scores

    def _correlations(self, examples: Sequence[LabelledPair], outputs: Sequence[PairPrediction]) -> dict[str, float]:
        gold = _numbers([example.label for example in examples])
        predicted = [output.score for output in outputs if isinstance(output, ScorePrediction)]
        if len(gold) < 2:
            raise UsageError(f"{len(gold)} pair cannot be scored: a correlation needs two or more")
        both = {"pearson": pearson(gold, predicted), "spearman": spearman(gold, predicted)}
        return {name: 0.0 if math.isnan(value) else value for name, value in both.items()}  # NaN: one score for all

    def score_counts(self, examples: Sequence[LabelledPair], outputs: Sequence[PairPrediction]) -> np.ndarray | None:
        labels = [output for output in outputs if isinstance(output, LabelPrediction)]
        if self.main_metric == "accuracy":
            return right_counts([example.label for example in examples], labels)
        if self.main_metric == "f1":  # right, predicted and gold, of the positive class
            gold, predicted = ([each.label == self.config.positive_label for each in some] for some in (examples, labels))
            return np.array([[a and b, b, a] for a, b in zip(gold, predicted, strict=True)], dtype=np.int64).reshape(-1, 3)
        return None

    def predict(self, pairs: Sequence[tuple[Sentence, Sentence]]) -> Predictions[PairPrediction]:
        """Predict the label or score of each pair of texts; a string is split into words."""
        examples = []
        for pair in pairs:
            if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
                raise UsageError(f"expected pairs of texts, such as ('It rains.', 'It is wet.'); got {pair!r}")
            examples.append(LabelledPair(as_text(pair[0]), as_text(pair[1])))
        return with_lines(self.predict_data(self.data(examples)), [_line(each) for each in examples])

    def example_json(self, example: LabelledPair, output: PairPrediction, path: str | Path) -> dict[str, Any]:
        gold = float(str(example.label)) if isinstance(output, ScorePrediction) else example.label
        return {"where": location(path, example.where), "gold": gold, **output.to_json(_line(example))}

    # ---- error analysis

    def confusion_matrix(self, examples: Sequence[LabelledPair], outputs: Sequence[PairPrediction]) -> Confusion | None:
        """Of labels; scores have none."""
        if self.config.goal == "score":
            return None
        labels = [output.label for output in outputs if isinstance(output, LabelPrediction)]
        return confusion(gold_labels([example.label for example in examples]), labels)

    def example_errors(
        self, examples: Sequence[LabelledPair], outputs: Sequence[PairPrediction], path: str | Path
    ) -> Iterator[ExampleError]:
        """Wrong labels by their probabilities, scores by their distance."""
        for example, output in zip(examples, outputs, strict=True):
            where, text = location(path, example.where), f"{joined(example.first)} | {joined(example.second)}"
            if isinstance(output, ScorePrediction):
                distance = abs(output.score - float(str(example.label)))
                yield ExampleError.single(where, text, str(example.label), f"{output.score:.3f}", distance)
            elif output.label != example.label:
                yield label_error(where, text, example.label, output)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[LabelledPair], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        assert isinstance(config, PairsConfig)
        return [] if config.goal == "score" else unknown_example_labels(examples, labels, path)


def _resolve_classes(config: PairsConfig, labels: Sequence[str]) -> PairsConfig:
    """With two classes, choose the positive one."""
    distinct = distinct_labels(labels)
    if any("." in label and _number(label) is not None for label in distinct):
        _log.warning("the labels look like scores (%s ...): for these, give %s", ", ".join(distinct[:3]), arg("goal", "score"))
    if config.metric == "f1" and len(distinct) > 2:
        hint = f"the training data has {len(distinct)}: give {arg('metric', 'macro_f1')}"
        raise ConfigError(f"{arg('metric', 'f1')} needs two classes; {hint}")
    if config.positive_label is not None and (len(distinct) > 2 or config.positive_label not in distinct):
        given = arg("positive_label", config.positive_label)
        raise ConfigError(f"{given} needs to be one of two labels; the training data has {', '.join(distinct)}")
    if config.positive_label is not None or len(distinct) > 2:
        return config
    plain = [label for label in distinct if not label.lower().startswith(("not", "non"))]
    return config.replace(positive_label=(plain or distinct)[-1])


def _resolve_scores(config: PairsConfig, labels: Sequence[str]) -> PairsConfig:
    """Take the range of scores from the training data."""
    numbers = _numbers(labels)
    low = min(numbers) if config.min_score is None else config.min_score
    high = max(numbers) if config.max_score is None else config.max_score
    if not low < high:
        raise PolysemeError(f"the scores of the training data range from {low} to {high}: they must differ")
    return config.replace(min_score=low, max_score=high)


def _are_scores(labels: Sequence[str]) -> bool:
    """Whether labels are numbers, not all of them whole."""
    numbers = [_number(label) for label in labels]
    return all(number is not None for number in numbers) and not all((number or 0.0).is_integer() for number in numbers)


def _number(label: str | None) -> float | None:
    """Return a label as a finite number, or None."""
    try:
        number = float(with_decimal_point(label)) if label is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _numbers(labels: Sequence[str | None]) -> list[float]:
    """Return all labels as numbers."""
    numbers = []
    for label in gold_labels(labels):
        number = _number(label)
        if number is None:
            hint = f"give numbers, or {arg('goal', 'classes')}"
            raise UsageError(f"the label {label!r} is not a number, which {arg('goal', 'score')} needs: {hint}")
        numbers.append(number)
    return numbers


def _line(pair: LabelledPair) -> str:
    """The texts as a line of `polyseme predict`."""
    return "\t".join(map(joined, (pair.first, pair.second)))
