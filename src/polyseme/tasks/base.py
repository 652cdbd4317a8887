"""What all tasks share: examples, a network on features, a loss, predictions and scores.

A new task is one file: how files are read into examples, which texts an example has, a network, and how its output becomes
predictions; its config is a second file, and both are a line of `polyseme.tasks.registry`. Training (`polyseme.tasks.fit`),
folders, batches, caches and encoders come from here. So do `polyseme predict` (one text per line) and `polyseme evaluate`
(scores alone): a task with other inputs, or with more to say of its errors, overrides a few methods.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from abc import abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import ConfigError, setting_of
from polyseme.base.display import html_table, short
from polyseme.base.errors import UsageError, arg
from polyseme.base.interrupts import computing
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.metrics.bootstrap import f1_score
from polyseme.metrics.classes import Confusion
from polyseme.tasks.config import POSITIONS, TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ErrorReport, ExampleError, UnknownLabel, distinct_errors
from polyseme.tasks.features import Features, TextInputs, TextVectors, split_encoders
from polyseme.tasks.folder_writer import TaskFiles, write_task_folder
from polyseme.tasks.leakage import TextHashes, leaked_examples
from polyseme.tasks.predictions import LayerWeights, Prediction
from polyseme.tasks.training_report import TrainingReport
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.text.labelled.text_in_context import TextInContext
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter
from polyseme.training.base import Learner, Loss, LrMultiplier

W = TypeVar("W")
_TIE_BREAK = 1e-6  # less than one example of any dev data


@dataclass(frozen=True)
class TaskBatch:
    """A batch on the device."""

    inputs: list[TextInputs]
    """For each text of an example."""
    targets: Any
    """What the loss compares with, in the task's own form."""


class Task(Learner):
    """A network for a task, on features of some encoders.

    >>> import polyseme                                              # doctest: +SKIP
    >>> polyseme.load_task("my-tagger").predict(["Ann is here ."])   # doctest: +SKIP
    """

    kind: ClassVar[str]
    """The name in `task.json` and on the command line."""
    config_type: ClassVar[type[TaskConfig]]
    main_metric: ClassVar[str]
    """The metric that chooses the best network: higher is better, 1 at most."""
    multi_line: ClassVar[bool] = False
    """Whether a prediction prints as several lines, with a blank line between two predictions."""
    texts_per_line: ClassVar[int] = 1
    """How many columns of a table make a line of `polyseme predict`; 0: its lines are no columns."""
    score_name = "error"
    report: TrainingReport | None = None
    """How well it does on dev and test data, as its folder says; with errors where `polyseme.train` trained it just now."""

    def __init__(self, config: TaskConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__()
        self.config, self.features, self.labels, self.splitter = config, features, list(labels), splitter
        if self.reads_words and not config.features.positions:
            raise ConfigError(
                f"{arg('positions')} is empty, so the network reads no encoder: give one of {', '.join(POSITIONS)}"
            )

    @property
    def shown_score(self) -> str:
        return self.main_metric

    @property
    def reads_words(self) -> bool:
        """Whether the network reads vectors of words."""
        return True

    # ---- what a task is

    @classmethod
    @abstractmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[Any]:
        """Read the examples of a file; a `FormatError` names the line of a mistake.

        `training`: for training a task may read more than is scored, such as the phrases of trees.
        """

    @classmethod
    def read_scored(cls, path: str | Path, config: TaskConfig, known: Sequence[str]) -> tuple[list[Any], dict[str, str]]:
        """Read the examples of a file that is scored, and match their labels with those of the training data (`known`)."""
        return cls.merge_labels(cls.read(path, config), config, known)

    @classmethod
    def guessed_options(cls, path: str | Path, config: TaskConfig, given: Collection[str] = ()) -> dict[str, Any]:
        """Return how the training file is laid out, as settings, where that is a guess; other files are read alike.

        `given`: the settings that the user gives, of which none is guessed.
        """
        return {}

    def predicted_labels(self) -> list[str]:
        """Return the labels as predictions have them."""
        return list(self.labels)

    @classmethod
    def merge_labels(
        cls, examples: Sequence[Any], config: TaskConfig, known: Sequence[str] | None = None
    ) -> tuple[list[Any], dict[str, str]]:
        """Return examples in which labels that differ only in case or blanks are one, and the new name of each label.

        `known`: the labels of the network or of the training data; None: the most frequent spelling is kept.
        """
        return list(examples), {}

    @classmethod
    def data_problems(cls, examples: Sequence[Any], config: TaskConfig) -> list[str]:
        """Return what to know of training data before it is used: repeated examples, rare classes."""
        return []

    @classmethod
    def with_context(cls, examples: Sequence[Any], config: TaskConfig) -> list[Any]:
        """Return the examples with the text around them, where the task reads that too."""
        return list(examples)

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[Any]) -> TaskConfig:
        """Return the config with the defaults that depend on the training data."""
        return config

    @classmethod
    def repeats_sentences(cls, examples: Sequence[Any], config: TaskConfig) -> bool:
        """Return whether training data has sentences more than once, or phrases of them: these are not held out."""
        return False

    @classmethod
    def min_dev_examples(cls, config: TaskConfig) -> int:
        """Return how many examples a score needs."""
        return 1

    @classmethod
    def split_groups(cls, examples: Sequence[Any], config: TaskConfig) -> list[list[Hashable]]:
        """Return the group of each example, whose members are held out together; coarse groupings first (`splits`)."""
        return []

    @classmethod
    def split_strata(cls, examples: Sequence[Any], config: TaskConfig) -> list[Hashable]:
        """Return the stratum of each example, of which every held-out part has its share, such as a label."""
        return [None] * len(examples)

    @classmethod
    @abstractmethod
    def collect_labels(cls, examples: Sequence[Any], config: TaskConfig) -> list[str]:
        """Return the labels that a network for these examples can predict."""

    @classmethod
    @abstractmethod
    def example_texts(cls, example: Any, splitter: Splitter) -> list[list[str]]:
        """Return the texts of an example as words; raw text is split."""

    @abstractmethod
    def make_targets(self, examples: Sequence[Any], inputs: list[TextInputs]) -> Any:
        """Return what the loss compares with, on the device."""

    @abstractmethod
    def summed_loss(self, texts: list[TextVectors], targets: Any) -> tuple[Tensor, int]:
        """Return the sum of a batch's losses, and the number of words or examples that it is over."""

    @abstractmethod
    def decode(self, texts: list[TextVectors], examples: Sequence[Any]) -> list[Any]:
        """Return the output for each example of a batch."""

    @abstractmethod
    def score(self, examples: Sequence[Any], outputs: Sequence[Any]) -> dict[str, float]:
        """Score outputs; the main metric is among the scores."""

    def score_counts(self, examples: Sequence[Any], outputs: Sequence[Any]) -> np.ndarray | None:
        """Return counts of each example from which `score_from_counts` computes the main metric; None: there are none.

        (examples, 2) right and all, or (examples, 3) right, predicted and gold spans. `compare` resamples them.
        """
        return None

    @classmethod
    def score_from_counts(cls, sums: np.ndarray) -> np.ndarray:
        """Return the main metric (...) from counts summed over examples (..., counts): a ratio, or the F1 of spans."""
        return f1_score(sums) if sums.shape[-1] == 3 else sums[..., 0] / np.maximum(sums[..., 1], 1)

    # ---- baselines: what anyone would try first

    baseline_name: ClassVar[str] = "baseline"

    def majority_outputs(self, train: Sequence[Any], examples: Sequence[Any]) -> list[Any] | None:
        """Return the same output for all examples, the most frequent one of the training data; None: there is none."""
        return None

    def baseline_outputs(self, train: Sequence[Any], sets: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]] | None:
        """Return the outputs of a simple model for the examples of each set; None: there is none."""
        return None

    # ---- building

    @classmethod
    def build(
        cls,
        config: TaskConfig,
        examples: Sequence[Any],
        encoders: Sequence[Encoder] = (),
        *,
        splitter: Splitter | None = None,
    ) -> Self:
        """Build a new network for training data; the default splitter is that of the first contextual encoder."""
        loaded, contextual = split_encoders(encoders)
        if config.features.mode == "finetune":  # the caller's own stay as they are
            contextual = [copy.deepcopy(encoder) for encoder in contextual]
        splitter = splitter or default_splitter(contextual)
        config = cls.resolve_defaults(config, examples)
        labels = cls.collect_labels(examples, config)
        Vocabulary(labels).to_text()  # refuses a label with a line break now, and not in the first save
        texts = [text for example in examples for text in cls.example_texts(example, splitter)]
        features = Features(config.features, WordEmbeddings.of(config.features.words, texts, loaded), contextual)
        return cls(config, features, labels, splitter)

    def data(self, examples: Sequence[Any]) -> TaskData:
        """Return examples with their texts."""
        return TaskData(examples, [self.example_texts(example, self.splitter) for example in examples])

    def words(self, text: Sentence) -> list[str]:
        """Return a text as words: a string is split, a list stays as it is."""
        return to_words(text, self.splitter)

    # ---- training

    def prepare(self, batch: ExampleBatch) -> TaskBatch:
        inputs = self._inputs(batch)
        return TaskBatch(inputs, self.make_targets(batch.examples, inputs))

    def _inputs(self, batch: ExampleBatch) -> list[TextInputs]:
        cached: Sequence[list[Tensor] | None] = batch.cached or [None] * len(batch.texts)
        return [self.features.prepare(texts, layers) for texts, layers in zip(batch.texts, cached, strict=True)]

    def loss(self, batch: TaskBatch) -> Loss:
        vectors = self.vectors(batch.inputs, training=True)
        total, count = self.summed_loss(vectors, batch.targets)
        words = sum(int(inputs.lengths.sum()) for inputs in batch.inputs)
        mean = total / max(count, 1)
        auxiliary = self.auxiliary_losses(vectors)
        return Loss(mean + self.features.penalty() + sum(auxiliary.values()), max(words, 1), {"task": mean, **auxiliary})

    def vectors(self, inputs: Sequence[Any], *, training: bool = False) -> list[Any]:
        """Return what the network reads of prepared inputs; `training`: for a loss, not for predictions."""
        return [self.features(each) for each in inputs]

    def auxiliary_losses(self, vectors: Sequence[Any]) -> dict[str, Tensor]:
        """Return weighted losses beside the task's, by their names in the log."""
        return {}

    def lr_multipliers(self) -> list[LrMultiplier]:
        return self.features.lr_multipliers("features.")

    def __str__(self) -> str:
        """How well it does, where that is known; `repr` has the modules of the network."""
        return repr(self) if self.report is None else f"{self.kind}\n{self.report}"

    def _repr_html_(self) -> str:
        weights = self.layer_weights()._repr_html_() if self.report is None else self.report._repr_html_()
        return html_table([self.kind], [[short(", ".join(self.labels), 200)]]) + weights

    def layer_weights(self) -> LayerWeights:
        """Return the learned weights of the encoders' layers; they print as bars."""
        return self.features.layer_weights()

    # ---- predictions

    @torch.no_grad()
    def predict_data(self, data: TaskData) -> list[Any]:
        """Return the output for each example, in their order; texts of similar length share a batch."""
        was_training, outputs = self.training, [None] * len(data)
        self.eval()
        try:
            with computing():
                for first, part in data.with_layers(self.features):
                    for positions, batch in part.by_length():
                        texts = self.vectors(self._inputs(batch))
                        for position, output in zip(positions, self.decode(texts, batch.examples), strict=True):
                            outputs[first + position] = output
        finally:
            self.train(was_training)
        return outputs

    @abstractmethod
    def predict(self, texts: Sequence[Any]) -> list[Any]:
        """Return predictions for new texts, strings or lists of words."""

    def evaluate(self, dev: TaskData) -> dict[str, float]:
        outputs = self.predict_data(dev)
        scores = self.score(dev.examples, outputs)
        return {self.score_name: self.selection_error(dev.examples, outputs, scores), **scores}

    def selection_error(self, examples: Sequence[Any], outputs: Sequence[Any], scores: Mapping[str, float]) -> float:
        """Return what is least for the best network: the error, and between equal errors the loss.

        Small dev data has few different scores, and the first network that reaches one has hardly begun to learn.
        """
        main, loss = scores[self.main_metric], self.dev_loss(examples, outputs)
        return 1.0 - (0.0 if math.isnan(main) else main) + _TIE_BREAK * loss / (1.0 + loss)

    def is_perfect(self, score: float) -> bool:
        return score <= _TIE_BREAK

    @property
    def prefers_later(self) -> bool:
        """Where outputs do not tell their loss, the later network has learned more."""
        return type(self).dev_loss is Task.dev_loss

    def dev_loss(self, examples: Sequence[Any], outputs: Sequence[Any]) -> float:
        """Return the mean loss of outputs, 0 or more; 0 also where outputs do not tell it."""
        return 0.0

    # ---- lines of `polyseme predict`

    def num_final(self, inputs: Sequence[Any]) -> int:
        """Return how many inputs, from the first on, have predictions that no later input changes."""
        return len(inputs)

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        """Return the text arguments of a command as lines of a file: each is one."""
        return list(texts)

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Any:
        """Return the input of `predict` for a line: its text, or its words. `where` names the line in a `FormatError`."""
        return line.split() if split_on_spaces else line

    def prediction_lines(self, line: str, prediction: Any) -> list[str]:
        """Return a prediction as lines of text; `line` is its input."""
        return prediction.to_lines(line) if isinstance(prediction, Prediction) else [f"{prediction}\t{line}"]

    def prediction_json(self, line: str, prediction: Any) -> dict[str, Any]:
        """Return a prediction as JSON values; `line` is its input."""
        if isinstance(prediction, Prediction):
            return prediction.to_json(line)
        is_data = dataclasses.is_dataclass(prediction) and not isinstance(prediction, type)
        return {"text": line, **(dataclasses.asdict(prediction) if is_data else {"answer": prediction})}

    def example_json(self, example: Any, output: Any, path: str | Path) -> dict[str, Any]:
        """Return the output for an example of a file as JSON values, after `where` it is and the right answer, `gold`.

        The default is the output alone.
        """
        return self.prediction_json("", output)

    # ---- error analysis

    def error_report(self, path: str | Path, *, errors: int = 10, known: TextHashes | None = None) -> ErrorReport:
        """Evaluate the task on a file, with the worst `errors`; of two equally bad ones, the more confident comes first.

        Equal errors in equal texts count as one of these.

        `known`: the texts of the training data, to count examples that have them.
        """
        examples, _ = self.read_scored(path, self.config, self.labels)
        report = self.analyse_errors(examples, self.predict_data(self.data(examples)), path, errors=errors)
        return report if known is None else dataclasses.replace(report, leaked=leaked_examples(type(self), known, examples))

    def analyse_errors(
        self, examples: Sequence[Any], outputs: Sequence[Any], path: str | Path, *, errors: int = 10
    ) -> ErrorReport:
        """Return what is right and wrong in outputs for the examples of a file."""
        unknown = self.unknown_labels(examples, self.labels, self.config, path)
        found = sorted(
            self.example_errors(examples, outputs, path), key=lambda each: (-each.weight, -(each.probability or 0.0))
        )
        return ErrorReport(
            str(path),
            self.score(examples, outputs),
            self.main_metric,
            len(examples),
            self.confusion_matrix(examples, outputs),
            distinct_errors(found)[:errors],
            unknown,
            self.layer_weights(),
            wrong=len(found),
        )

    def confusion_matrix(self, examples: Sequence[Any], outputs: Sequence[Any]) -> Confusion | None:
        """Return how often each class was predicted as each; None: outputs are not classes."""
        return None

    def example_errors(self, examples: Sequence[Any], outputs: Sequence[Any], path: str | Path) -> Iterable[ExampleError]:
        """Return the examples of a file with wrong outputs, each with its location and how bad it is."""
        return ()

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[Any], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        """Return the labels of examples that a network with `labels` cannot predict, each with its first location."""
        return []

    # ---- settings of a trained task

    def sharing_weights(self) -> Self:
        """Return a task with the same network, whose settings can change without those of this one."""
        return copy.copy(self)

    def set_data_options(self, given: Mapping[str, Any]) -> None:
        """Change how data files are read: settings of the group "Data", such as columns of a table."""
        fields = {each.name for each in dataclasses.fields(self.config) if setting_of(each).group == "Data"}
        if idle := [name for name in given if name not in fields]:
            raise UsageError(f"{', '.join(map(arg, idle))}: data files of {self.kind} have no such option")
        try:
            self.config = self.config.with_layout(given)
        except ConfigError as error:
            raise UsageError(str(error)) from error

    def set_decoding(self, given: Mapping[str, Any]) -> None:
        """Change how texts are generated; only generation has such options."""
        if given:
            raise UsageError(
                f"{', '.join(map(arg, given))}: only generation has decoding options, and this task is {self.kind}"
            )

    def save(self, folder: Path) -> None:
        files = TaskFiles(self.kind, self.config, self.features, self.labels, self.splitter, self.state_dict())
        write_task_folder(files, folder)


def default_splitter(contextual: Sequence[Encoder]) -> Splitter:
    """Return how raw text becomes words: as the first contextual encoder splits it."""
    return contextual[0].splitter if contextual else get_splitter("english")


def check_texts(texts: Sequence[W]) -> Sequence[W]:
    """Return texts to predict for; refuse a single string, which would be taken for its letters."""
    if isinstance(texts, str):
        raise UsageError("expected a list of texts, got one string: put it into a list")
    return texts


def to_words(text: Sentence, splitter: Splitter) -> list[str]:
    """Return a text as words: a string is split, a list stays as it is."""
    return splitter(text) if isinstance(text, str) else text if isinstance(text, TextInContext) else as_words(text)


def as_words(text: Iterable[W]) -> list[W]:
    """Return words as a list; refuse what is not a sequence, such as an empty cell of a table."""
    if not isinstance(text, Iterable):
        raise UsageError(f"a text is a string or a list of words; got {text!r}")
    return list(text)


def as_text(given: Sentence) -> str | list[str]:
    """Return a text that is to be split, or its words."""
    return given if isinstance(given, str) else as_words(given)


def joined(text: Sentence) -> str:
    """Return a text as a string."""
    return text if isinstance(text, str) else " ".join(text)
