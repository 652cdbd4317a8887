"""Text classification: one label for a text. Sentiment, topics, kinds of questions, acceptability.

Three networks: the biattentive one behind the SST row of Peters et al. 2018 (`bcn`), a light one that pools LSTM states or
word vectors (`pooled`), and an encoder with a head (`linear`: ULMFiT, GPT, BERT).

Files are tables or sentiment trees (`tables` and `trees` of `polyseme.text.labelled`). Phrases of trees can be training
examples too; scores are of whole sentences. Batch norm in bcn's maxout layers, as in McCann et al. 2017, is off by default: on
SST-5 (three seeds) word vectors score 46.7 with it and 47.4 without, and 48.8 both ways with an ELMo
(`docs/en/results/tasks.md`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.encoders.batch import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.nn.dropout import Dropout
from polyseme.nn.networks.bcn import Bcn
from polyseme.tasks.base import as_text, check_texts, joined, to_words
from polyseme.tasks.classification_config import ClassificationConfig
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.containment import containing_texts
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextVectors
from polyseme.tasks.label_checks import combined_problems, label_problems, merge_spellings, number_problems
from polyseme.tasks.labels import (
    TextPooler,
    distinct_labels,
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
from polyseme.tasks.predictions import LabelPrediction, Predictions, with_lines
from polyseme.tasks.splits import same_text
from polyseme.tasks.wide import Texts
from polyseme.tasks.wide_task import WideTargets, WideTask
from polyseme.text.labelled.numbered_lines import first_line
from polyseme.text.labelled.trees import examples as tree_examples
from polyseme.text.labelled.trees import read_trees
from polyseme.text.words import Splitter

LSTM_EXAMPLES = 6000
"""From so many training examples on, the pooled network has an LSTM layer by default."""
_TREE = re.compile(r"\s*\([0-9]+\s")


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text, as a string to be split or as words, and its label."""

    text: str | list[str]
    label: str | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file on which it begins, for messages."""


class _Bcn(nn.Module):
    """The biattentive network, with dropout on its input."""

    def __init__(self, config: ClassificationConfig, features: Features, classes: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
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


class Classification(WideTask):
    """A text classifier; an output is a `LabelPrediction`."""

    kind = "classification"
    config_type = ClassificationConfig
    config: ClassificationConfig

    def __init__(self, config: ClassificationConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        self.network: nn.Module
        if config.is_linear:
            self.network = LinearHead(
                config.linear_head,
                features,
                len(self.labels),
                layout=SequenceLayout(),
                hidden_size=config.hidden_size,
                dropout=config.dropout,
            )
        elif config.network == "bcn":
            self.network = _Bcn(config, features, len(self.labels))
        else:
            pooler = TextPooler(config, features)
            head = hidden_layer(pooler.dim, config.hidden_size, len(self.labels), config.dropout)
            self.network = nn.Sequential(pooler, head)

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """The metric of the config."""
        return self.config.metric

    # ---- data

    @classmethod
    def read(
        cls, path: str | Path, config: TaskConfig, *, training: bool = False, known: Collection[str] = ()
    ) -> list[LabelledText]:
        assert isinstance(config, ClassificationConfig)
        if _reads_trees(path, config):
            return _read_phrases(path, config, training=training)
        rows = read_labelled_rows(path, config, known)
        if rows[0].second is not None:
            raise _holds_pairs(path)
        if training:
            refuse_own_labels(path, config, [row.label for row in rows])
        return [LabelledText(row.first, row.label, row.where) for row in rows]

    @classmethod
    def read_scored(
        cls, path: str | Path, config: TaskConfig, known: Sequence[str]
    ) -> tuple[list[LabelledText], dict[str, str]]:
        return cls.merge_labels(cls.read(path, config, known=known), config, known)

    @classmethod
    def guessed_options(cls, path: str | Path, config: TaskConfig, given: Collection[str] = ()) -> dict[str, Any]:
        assert isinstance(config, ClassificationConfig)
        options = {} if _reads_trees(path, config) else guessed_data_options(path, config)
        if "second" in options:
            raise _holds_pairs(path)
        return options

    @classmethod
    def merge_labels(
        cls, examples: Sequence[LabelledText], config: TaskConfig, known: Sequence[str] | None = None
    ) -> tuple[list[LabelledText], dict[str, str]]:
        return merge_spellings(examples, known, strict=config.strict)

    @classmethod
    def data_problems(cls, examples: Sequence[LabelledText], config: TaskConfig) -> list[str]:
        labels = [each.label for each in examples]
        return [
            *number_problems(labels),
            *combined_problems(labels),
            *label_problems([same_text(each.text) for each in examples], labels, lines=[each.where for each in examples]),
        ]

    @classmethod
    def split_groups(cls, examples: Sequence[LabelledText], config: TaskConfig) -> list[list[Hashable]]:
        return [[*containing_texts([example.text for example in examples])]]

    @classmethod
    def split_strata(cls, examples: Sequence[LabelledText], config: TaskConfig) -> list[Hashable]:
        return [example.label for example in examples]

    @classmethod
    def collect_labels(cls, examples: Sequence[LabelledText], config: TaskConfig) -> list[str]:
        return distinct_labels([example.label for example in examples])

    @classmethod
    def example_texts(cls, example: LabelledText, splitter: Splitter) -> list[list[str]]:
        return [to_words(example.text, splitter)]

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[LabelledText]) -> TaskConfig:
        config = super().resolve_defaults(config, examples)
        assert isinstance(config, ClassificationConfig)
        if config.layers is None:
            config = config.replace(layers=int(len(examples) >= LSTM_EXAMPLES))
        return config if config.word_layer is not None else config.replace(word_layer=config.hidden_size)

    @classmethod
    def repeats_sentences(cls, examples: Sequence[LabelledText], config: TaskConfig) -> bool:
        """Return whether sentences repeat: phrases and copies of sentiment trees do, raw texts do not."""
        assert isinstance(config, ClassificationConfig)
        repeated = config.phrases != "none" or config.sentence_copies > 1
        return repeated and not all(isinstance(example.text, str) for example in examples)

    @classmethod
    def wide_texts(cls, example: LabelledText) -> Texts:
        return (example.text,)

    @classmethod
    def target_values(cls, examples: Sequence[LabelledText], labels: Sequence[str], config: TaskConfig) -> np.ndarray:
        return label_numbers([example.label for example in examples], labels)

    # ---- network

    def summed_loss(self, texts: list[TextVectors], targets: WideTargets) -> tuple[Tensor, int]:
        scores = self.add_wide(self.network(texts[0]), targets.wide)
        return F.cross_entropy(scores, targets.values, reduction="sum"), len(targets.values)

    def decode(self, texts: list[TextVectors], examples: Sequence[LabelledText]) -> list[LabelPrediction]:
        return self.to_predictions(self.scores(texts, examples))

    def to_predictions(self, scores: Tensor) -> list[LabelPrediction]:
        return label_predictions(scores, self.labels)

    # ---- predictions

    def score(self, examples: Sequence[LabelledText], outputs: Sequence[LabelPrediction]) -> dict[str, float]:
        table = self.confusion_matrix(examples, outputs)
        return {"accuracy": table.accuracy, "macro_f1": table.macro_f1, "matthews": table.matthews}

    def score_counts(self, examples: Sequence[LabelledText], outputs: Sequence[LabelPrediction]) -> np.ndarray | None:
        gold = [example.label for example in examples]
        return right_counts(gold, outputs) if self.main_metric == "accuracy" else None

    def predict(self, texts: Sequence[Sentence]) -> Predictions[LabelPrediction]:
        """Predict the label of each text, with the probabilities of all labels; a string is split into words."""
        examples = [LabelledText(as_text(text)) for text in check_texts(texts)]
        return with_lines(self.predict_data(self.data(examples)), [joined(each.text) for each in examples])

    def example_json(self, example: LabelledText, output: LabelPrediction, path: str | Path) -> dict[str, Any]:
        gold = {"where": location(path, example.where), "gold": example.label}
        return {**gold, **output.to_json(joined(example.text))}

    # ---- error analysis

    def confusion_matrix(self, examples: Sequence[LabelledText], outputs: Sequence[LabelPrediction]) -> Confusion:
        return confusion(gold_labels([example.label for example in examples]), [output.label for output in outputs])

    def example_errors(
        self, examples: Sequence[LabelledText], outputs: Sequence[LabelPrediction], path: str | Path
    ) -> Iterator[ExampleError]:
        """Wrong labels by their probabilities."""
        for example, output in zip(examples, outputs, strict=True):
            if output.label != example.label:
                yield label_error(location(path, example.where), joined(example.text), example.label, output)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[LabelledText], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        return unknown_example_labels(examples, labels, path)


def _holds_pairs(path: str | Path) -> UsageError:
    return UsageError(f"{path} holds pairs of texts: train `pairs`, or name the text's column with {arg('text')}")


def _reads_trees(path: str | Path, config: ClassificationConfig) -> bool:
    """Return whether no option of tables is given, and the first line that is not blank begins with a bracket and a label."""
    table = config.format is not None or config.text is not None or config.label is not None
    return not table and not Path(path).expanduser().is_dir() and _TREE.match(first_line(path) or "") is not None


def _read_phrases(path: str | Path, config: ClassificationConfig, *, training: bool) -> list[LabelledText]:
    """Read the sentences of trees, in training with their phrases."""
    options: dict[str, Any] = {}
    if training:
        options = {"phrases": config.phrases, "sentence_copies": config.sentence_copies}
    phrases = tree_examples(read_trees(path, strict=config.strict), classes=config.classes, **options)
    if not phrases:
        raise FormatError(path, f"holds neutral sentences only, which 2 classes leave out: give {arg('classes', 5)}")
    return [
        LabelledText(phrase.in_sentence() if config.phrase_context else list(phrase.words), phrase.label, phrase.where)
        for phrase in phrases
    ]
