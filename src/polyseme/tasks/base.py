"""What every task shares: examples in, a network around features, a loss to descend, answers out and a score of them.

A new task is one file: a config, how files are read into examples, which texts an example has, a network, and how its scores
become answers. Training (`polyseme.tasks.fit`), folders (`polyseme.tasks.folder`), batches, caches and encoders come from here.
So do the questions and answers of `polyseme predict` (one text a line) and the report of `polyseme evaluate` (scores alone): a
task that is asked in another way, or can say more of its errors, says so by a few methods that have defaults here.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.metrics.bootstrap import f1_score
from polyseme.metrics.classes import Confusion
from polyseme.tasks.config import POSITIONS, TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel
from polyseme.tasks.features import Features, TextInputs, TextVectors, split_encoders
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.text.labelled.text_in_context import TextInContext
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter
from polyseme.training.base import Learner, Loss, LrMultiplier

Piece = TypeVar("Piece")


@dataclass(frozen=True)
class TaskBatch:
    """A batch on the device."""

    inputs: list[TextInputs]
    """For each text of an example."""
    targets: Any
    """What the task wants, as the task has it."""


@runtime_checkable
class Prediction(Protocol):
    """An answer that knows how `polyseme predict` prints it; `asked` is the line that it answers."""

    def to_lines(self, asked: str) -> list[str]:
        """What people see."""

    def to_values(self, asked: str) -> dict[str, Any]:
        """What programs read, as JSON."""


class Task(Learner):
    """A network for a task, around some encoders."""

    kind: ClassVar[str]
    """The name in `task.json` and on the command line."""
    config_type: ClassVar[type[TaskConfig]]
    main_metric: ClassVar[str]
    """The score by which models are chosen: the higher, the better, and 1 at most."""
    multi_line: ClassVar[bool] = False
    """Whether an answer is printed as a block of lines, with a blank line between two."""
    score_name = "error"

    def __init__(self, config: TaskConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__()
        self.config, self.features, self.labels, self.splitter = config, features, list(labels), cut
        if self.reads_words and not config.features.positions:
            raise ConfigError(f"positions are empty, so the network reads no encoder; give one of {', '.join(POSITIONS)}")

    @property
    def reads_words(self) -> bool:
        """Whether the network reads vectors of words."""
        return True

    # ---- what a task is

    @classmethod
    @abstractmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[Any]:
        """The examples of a file; a `FormatError` names the line of what is wrong.

        `training`: the file is to be trained on, where a task may take more of it than is scored (phrases of trees).
        """

    @classmethod
    def in_context(cls, examples: Sequence[Any], config: TaskConfig) -> list[Any]:
        """The examples with what stands around them, where the task wants that read, too."""
        return list(examples)

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[Any]) -> TaskConfig:
        """The config with what was left open chosen by the training data."""
        return config

    @classmethod
    def min_dev_examples(cls, config: TaskConfig) -> int:
        """How many examples a score needs."""
        return 1

    @classmethod
    @abstractmethod
    def collect_labels(cls, examples: Sequence[Any], config: TaskConfig) -> list[str]:
        """The labels that a network for these examples can give."""

    @classmethod
    @abstractmethod
    def example_texts(cls, example: Any, cut: Splitter) -> list[list[str]]:
        """The texts of an example as words; raw text is split by `cut`."""

    @abstractmethod
    def make_targets(self, examples: Sequence[Any], inputs: list[TextInputs]) -> Any:
        """What the loss compares with, on the device."""

    @abstractmethod
    def losses(self, texts: list[TextVectors], targets: Any) -> tuple[Tensor, int]:
        """The sum of a batch's losses, and over how many words or examples."""

    @abstractmethod
    def answers(self, texts: list[TextVectors], examples: Sequence[Any]) -> list[Any]:
        """An answer for each example of a batch."""

    @abstractmethod
    def score(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        """Numbers that tell how good answers are, `main` among them."""

    def score_counts(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray | None:
        """Counts of each example from which `score_from_counts` computes the main metric; None: it is not made of counts.

        (examples, 2) right and all, or (examples, 3) right, predicted and gold spans. `compare` resamples them.
        """
        return None

    @classmethod
    def score_from_counts(cls, sums: np.ndarray) -> np.ndarray:
        """The main score (...) from score_counts that were summed over examples (..., counts): a share, or the F1 of spans."""
        return f1_score(sums) if sums.shape[-1] == 3 else sums[..., 0] / np.maximum(sums[..., 1], 1)

    # ---- building

    @classmethod
    def build(
        cls,
        config: TaskConfig,
        examples: Sequence[Any],
        encoders: Sequence[Encoder] = (),
        *,
        cut: Splitter | None = None,
    ) -> Self:
        """A new network for a training set; words are split by `cut`, else as the first encoder that knows sentences does."""
        loaded, contextual = split_encoders(encoders)
        if config.features.mode == "finetune":  # the caller's own stay as they are
            contextual = [copy.deepcopy(encoder) for encoder in contextual]
        cut = cut or (contextual[0].splitter if contextual else get_splitter("english"))
        config = cls.resolve_defaults(config, examples)
        labels = cls.collect_labels(examples, config)
        Vocabulary(labels).to_text()  # a label that cannot stand on a line is told now, and not by the first save
        texts = [text for example in examples for text in cls.example_texts(example, cut)]
        features = Features(config.features, WordEmbeddings.of(config.features.words, texts, loaded), contextual)
        return cls(config, features, labels, cut)

    def data(self, examples: Sequence[Any]) -> TaskData:
        """ExampleBatch with their texts."""
        return TaskData(examples, [self.example_texts(example, self.splitter) for example in examples])

    def words(self, text: Sentence) -> list[str]:
        """A text as words: a string is split, a list is taken as it is."""
        return to_words(text, self.splitter)

    # ---- learning

    def prepare(self, batch: ExampleBatch) -> TaskBatch:
        inputs = self._inputs(batch)
        return TaskBatch(inputs, self.make_targets(batch.examples, inputs))

    def _inputs(self, batch: ExampleBatch) -> list[TextInputs]:
        cached: Sequence[list[Tensor] | None] = batch.cached or [None] * len(batch.texts)
        return [self.features.prepare(texts, layers) for texts, layers in zip(batch.texts, cached, strict=True)]

    def loss(self, batch: TaskBatch) -> Loss:
        vectors = self.vectors(batch.inputs, learning=True)
        total, count = self.losses(vectors, batch.targets)
        words = sum(int(inputs.lengths.sum()) for inputs in batch.inputs)
        mean = total / max(count, 1)
        further = self.auxiliary_losses(vectors)
        whole = mean + self.features.penalty() + sum(further.values())
        return Loss(whole, max(words, 1), {"task": mean, **further})

    def vectors(self, inputs: Sequence[Any], *, learning: bool = False) -> list[Any]:
        """What the network reads of prepared inputs; `learning`: for a loss, and not for answers."""
        return [self.features(each) for each in inputs]

    def auxiliary_losses(self, vectors: Sequence[Any]) -> dict[str, Tensor]:
        """What is learned beside the task, weighted, by its names in the log."""
        return {}

    def lr_multipliers(self) -> list[LrMultiplier]:
        return self.features.lr_multipliers("features.")

    # ---- answering

    @torch.no_grad()
    def answer(self, data: TaskData) -> list[Any]:
        """An answer for each example, in their order; texts of like length go together."""
        was, found = self.training, [None] * len(data)
        self.eval()
        for first, part in data.with_layers(self.features):
            for places, batch in part.by_length():
                texts = self.vectors(self._inputs(batch))
                for place, answer in zip(places, self.answers(texts, batch.examples), strict=True):
                    found[first + place] = answer
        self.train(was)
        return found

    @abstractmethod
    def predict(self, texts: Sequence[Any]) -> list[Any]:
        """Answers for new texts, strings or lists of words."""

    def evaluate(self, dev: TaskData) -> dict[str, float]:
        scores = self.score(dev.examples, self.answer(dev))
        main = scores[self.main_metric]
        return {self.score_name: 1.0 - (0.0 if math.isnan(main) else main), **scores}

    # ---- asked by `polyseme predict`

    def num_final(self, questions: Sequence[Any]) -> int:
        """How many of the questions, from the first on, get the same answers whatever is asked next."""
        return len(questions)

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        """The arguments of a command as lines, such as a file has: each is one."""
        return list(texts)

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Any:
        """What `predict` is asked by a line: its text, or its words. `where` names the line in a `FormatError`."""
        return line.split() if split_on_spaces else line

    def prediction_lines(self, asked: str, answer: Any) -> list[str]:
        """What people see of an answer of `predict`; `asked` is its line."""
        return answer.to_lines(asked) if isinstance(answer, Prediction) else [f"{answer}\t{asked}"]

    def prediction_values(self, asked: str, answer: Any) -> dict[str, Any]:
        """The same for programs, as JSON."""
        if isinstance(answer, Prediction):
            return answer.to_values(asked)
        is_data = dataclasses.is_dataclass(answer) and not isinstance(answer, type)
        return {"text": asked, **(dataclasses.asdict(answer) if is_data else {"answer": answer})}

    # ---- judged by `polyseme evaluate`

    def confusion_matrix(self, examples: Sequence[Any], answers: Sequence[Any]) -> Confusion | None:
        """What is taken for what; None: answers are no classes."""
        return None

    def example_errors(self, examples: Sequence[Any], answers: Sequence[Any], path: str | Path) -> Iterable[ExampleError]:
        """The examples of a file that were answered wrongly, each with its place there and how bad it is."""
        return ()

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[Any], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        """The labels of a file's examples that a network with `labels` cannot give, each with its first place there."""
        return []

    def save(self, folder: Path) -> None:
        from polyseme.tasks.folder import save

        save(self, folder)


def check_texts(texts: Sequence[Any]) -> Sequence[Any]:
    """Texts to answer; one string, which would be taken for its letters, is refused."""
    if isinstance(texts, str):
        raise UsageError("expected a list of texts, got one string: put it into a list")
    return texts


def to_words(text: Sentence, cut: Splitter) -> list[str]:
    """A text as words: a string is split, a list is taken as it is, and so are words that stand in a longer text."""
    return cut(text) if isinstance(text, str) else text if isinstance(text, TextInContext) else as_words(text)


def as_words(text: Iterable[Piece]) -> list[Piece]:
    """A text that comes in words; what is none, such as an empty cell of a table, is told."""
    if not isinstance(text, Iterable):
        raise UsageError(f"a text is a string or a list of words; got {text!r}")
    return list(text)


def as_text(given: Sentence) -> str | list[str]:
    """A text as it is asked about: a string that is to be split, or its words."""
    return given if isinstance(given, str) else as_words(given)
