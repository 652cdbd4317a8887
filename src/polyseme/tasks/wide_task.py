"""Tasks whose network can have a wide part: classification and sentence pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder
from polyseme.nn.to_device import to_device
from polyseme.tasks.classification_config import TableTaskConfig
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import TaskData
from polyseme.tasks.ensemble import mean_outputs
from polyseme.tasks.features import Features, TextInputs
from polyseme.tasks.linear_head import SequenceTask
from polyseme.tasks.linear_model import fit_linear_model
from polyseme.tasks.predictions import LabelPrediction
from polyseme.tasks.sparse_features import FeatureHasher, Text, max_ngram
from polyseme.tasks.wide import Texts, WidePart, fit_wide
from polyseme.text.words import Splitter


@dataclass(frozen=True)
class WideTargets:
    """What the loss compares with."""

    values: Tensor
    """(examples,): class numbers, or scores from 0 to 1."""
    wide: Tensor | None
    """(examples, outputs): scores of the wide part."""


class WideTask(SequenceTask):
    """A task of classes or scores, whose network can have a wide part."""

    config: TableTaskConfig
    baseline_name = "n-grams with logistic regression"
    others: Sequence[WideTask] = ()
    """Tasks with which it is combined (`combine_tasks`)."""

    def __init__(self, config: TableTaskConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        self.wide = WidePart(config.wide_features, len(self.labels), config.wide_dropout) if config.wide_features else None

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[Any]) -> TaskConfig:
        """A wide part by default, where the network is the task's own and examples are whole texts."""
        config = super().resolve_defaults(config, examples)
        assert isinstance(config, TableTaskConfig)
        if config.wide is None:
            config = config.replace(wide=not config.is_linear and not cls.repeats_sentences(examples, config))
        return config

    @classmethod
    @abstractmethod
    def wide_texts(cls, example: Any) -> Texts:
        """Return the texts of an example as they were given."""

    @classmethod
    @abstractmethod
    def target_values(cls, examples: Sequence[Any], labels: Sequence[str], config: Any) -> np.ndarray:
        """Return (examples,) class numbers, or scores from 0 to 1."""

    @classmethod
    def build(
        cls,
        config: TaskConfig,
        examples: Sequence[Any],
        encoders: Sequence[Encoder] = (),
        *,
        splitter: Splitter | None = None,
    ) -> Self:
        config = cls.resolve_defaults(config, examples)
        assert isinstance(config, TableTaskConfig)
        fitted, texts = None, [cls.wide_texts(example) for example in examples]
        if config.wide:
            labels = cls.collect_labels(examples, config)
            fitted = fit_wide(texts, cls.target_values(examples, labels, config), len(labels))
        config = config.replace(wide_features=0 if fitted is None else len(fitted.model.ids))
        task = super().build(config, examples, encoders, splitter=splitter)
        if fitted is not None and task.wide is not None:
            task.wide.load_fit(fitted, texts)
        return task

    def make_targets(self, examples: Sequence[Any], inputs: list[TextInputs]) -> WideTargets:
        values = torch.from_numpy(self.target_values(examples, self.labels, self.config))
        wide = None if self.wide is None else self.wide.cross_fitted([self.wide_texts(example) for example in examples])
        return WideTargets(to_device(values, self.features.device), wide)

    def add_wide(self, scores: Tensor, wide: Tensor | None) -> Tensor:
        """Return the network's scores (examples, outputs), with those of the wide part."""
        return scores.float() if self.wide is None or wide is None else scores.float() + self.wide(wide)

    def scores(self, texts: Sequence[Any], examples: Sequence[Any]) -> Tensor:
        """Return the scores (examples, outputs) of examples to predict."""
        wide = None if self.wide is None else self.wide.scores([self.wide_texts(example) for example in examples])
        return self.add_wide(self.network(*texts), wide)

    def dev_loss(self, examples: Sequence[Any], outputs: Sequence[Any]) -> float:
        """The mean negative log probability of the right labels; scores are too fine to need it."""
        found = [
            output.probabilities.get(example.label, 0.0)
            for example, output in zip(examples, outputs, strict=True)
            if isinstance(output, LabelPrediction)
        ]
        return float(-np.log(np.clip(found, 1e-9, 1.0)).mean()) if found else 0.0

    def predict_data(self, data: TaskData) -> list[Any]:
        outputs = super().predict_data(data)
        if not self.others:
            return outputs
        return mean_outputs([outputs, *(other.predict_data(other.data(data.examples)) for other in self.others)])

    def save(self, folder: Path) -> None:
        if self.others:
            raise UsageError("tasks that are combined have no folder of their own: save each of them")
        super().save(folder)

    # ---- baselines

    def majority_outputs(self, train: Sequence[Any], examples: Sequence[Any]) -> list[Any]:
        label = Counter(example.label for example in train).most_common(1)[0][0]
        return [LabelPrediction(label, 1.0, {label: 1.0}) for _ in examples]

    def baseline_outputs(self, train: Sequence[Any], sets: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]] | None:
        """Logistic regression on TF-IDF of n-grams, with the defaults of scikit-learn."""
        hasher = FeatureHasher(max_ngram([_joined(self.wide_texts(example)) for example in train]))
        rows = {name: hasher.texts([_joined(self.wide_texts(example)) for example in each]) for name, each in sets.items()}
        texts = hasher.texts([_joined(self.wide_texts(example)) for example in train])
        targets = self.target_values(train, self.labels, self.config)
        model = fit_linear_model(texts, targets, len(self.labels), weighting="tfidf")
        return {name: self.to_predictions(model.scores(each)) for name, each in rows.items()}

    @abstractmethod
    def to_predictions(self, scores: Tensor) -> list[Any]:
        """Return the predictions for scores (examples, outputs)."""


def _joined(texts: Texts) -> Text:
    """The texts of an example as one."""
    return texts[0] if len(texts) == 1 else " ".join(text if isinstance(text, str) else " ".join(text) for text in texts)
