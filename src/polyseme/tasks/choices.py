"""Multiple choice: which of several answers to a question is right, or which of several endings follows.

As Radford et al. 2018 have it: the question, behind its context where there is one, is read together with each choice by the
whole encoder (`polyseme.tasks.linear_head`), a head gives each such pair one score, and the scores of a question's choices go
through one softmax. Questions may have different numbers of choices. Files are JSON lines (`polyseme.text.labelled.choices`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.batch import Sentence
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import as_text, to_words
from polyseme.tasks.choices_config import ChoicesConfig
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, location
from polyseme.tasks.features import Features
from polyseme.tasks.linear_head import LinearHead, SequenceInputs, SequenceTask, SequenceVectors
from polyseme.text.labelled.choices import ChoiceQuestion, read_choices
from polyseme.text.words import Splitter

LOWEST = -1e9  # the score of a choice that is not there
_LABEL = "answer"  # what stands in labels.txt: the choices are each question's own


@dataclass(frozen=True, slots=True)
class ChoicePrediction:
    """The choice that the network takes, and how likely it holds each to be."""

    place: int
    """Among the choices, from 0."""
    text: str
    probability: float
    probabilities: list[float]

    def to_lines(self, asked: str) -> list[str]:
        """The choice, its probability and the line."""
        return [f"{self.text}\t{self.probability:.4f}\t{asked}"]

    def to_values(self, asked: str) -> dict[str, Any]:
        values = {"answer": self.text, "place": self.place, "probability": self.probability}
        return {"text": asked, **values, "probabilities": self.probabilities}


@dataclass(frozen=True)
class _Targets:
    """What the loss compares with, on the device."""

    places: Tensor
    """(questions, choices): where the score of each choice stands; 0 where there is none."""
    there: Tensor
    """(questions, choices): True where there is one."""
    answers: Tensor
    """(questions,): the right ones."""


class _ChoicesData(TaskData):
    """Questions; the texts of a batch are those of all its choices: the question of each, and the choice."""

    def __init__(self, examples: Sequence[ChoiceQuestion], texts: Sequence[list[list[str]]]) -> None:
        super().__init__(examples, texts)
        # padded words of an example: what a batch's size is bounded by
        self.lengths = [(len(each[0]) + max(map(len, each[1:]))) * (len(each) - 1) for each in self.texts]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        pairs = [(self.texts[row][0], choice) for row in rows for choice in self.texts[row][1:]]
        return ExampleBatch([self.examples[row] for row in rows], [list(slot) for slot in zip(*pairs, strict=True)], None)


class Choices(SequenceTask):
    """A chooser; an answer is a `ChoicePrediction`."""

    kind = "choices"
    config_type = ChoicesConfig
    config: ChoicesConfig
    main_metric = "accuracy"

    def __init__(self, config: ChoicesConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        self.network = LinearHead(
            config.linear_head,
            features,
            1,
            texts=2,
            hidden=config.hidden_size,
            dropout=config.dropout,
            keep_end=True,  # the question stands behind its context, which is what may be too long
        )

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[ChoiceQuestion]:
        return read_choices(path)

    @classmethod
    def collect_labels(cls, examples: Sequence[ChoiceQuestion], config: TaskConfig) -> list[str]:
        return [_LABEL]

    @classmethod
    def example_texts(cls, example: ChoiceQuestion, cut: Splitter) -> list[list[str]]:
        before = [] if example.context is None else to_words(example.context, cut)
        return [before + to_words(example.question, cut), *(to_words(choice, cut) for choice in example.choices)]

    def data(self, examples: Sequence[ChoiceQuestion]) -> TaskData:
        return _ChoicesData(examples, [self.example_texts(example, self.splitter) for example in examples])

    def make_targets(self, examples: Sequence[ChoiceQuestion], inputs: list[SequenceInputs]) -> _Targets:  # type: ignore[override]
        places, there = self._places(examples)
        answers = to_device(torch.tensor(_gold(examples)), self.features.device)
        return _Targets(places, there, answers)

    def _places(self, examples: Sequence[ChoiceQuestion]) -> tuple[Tensor, Tensor]:
        """(questions, choices) twice: where each choice's score stands, and where there is a choice."""
        counts = torch.tensor([len(example.choices) for example in examples])
        steps = torch.arange(int(counts.max()))
        there = steps < counts[:, None]
        places = (counts.cumsum(0) - counts)[:, None] + steps
        return to_device(places * there, self.features.device), to_device(there, self.features.device)

    # ---- network

    def losses(self, texts: list[SequenceVectors], targets: _Targets) -> tuple[Tensor, int]:  # type: ignore[override]
        scores = self._scores(texts, targets.places, targets.there)
        return F.cross_entropy(scores, targets.answers, reduction="sum"), len(targets.answers)

    def _scores(self, texts: list[SequenceVectors], places: Tensor, there: Tensor) -> Tensor:
        """(questions, choices)."""
        each = self.network(*texts).float().squeeze(1)
        return each.index_select(0, places.flatten()).view(places.shape).masked_fill(~there, LOWEST)

    def answers(self, texts: list[SequenceVectors], examples: Sequence[ChoiceQuestion]) -> list[ChoicePrediction]:  # type: ignore[override]
        rows = torch.softmax(self._scores(texts, *self._places(examples)).double(), dim=1).tolist()
        found = []
        for example, row in zip(examples, rows, strict=True):
            shares = row[: len(example.choices)]
            best = max(range(len(shares)), key=shares.__getitem__)
            found.append(ChoicePrediction(best, _plain(example.choices[best]), shares[best], shares))
        return found

    # ---- answers

    def score(self, examples: Sequence[ChoiceQuestion], answers: Sequence[ChoicePrediction]) -> dict[str, float]:
        score_counts = self.score_counts(examples, answers)
        return {"accuracy": float(score_counts[:, 0].mean()) if len(score_counts) else 0.0}

    def score_counts(self, examples: Sequence[ChoiceQuestion], answers: Sequence[ChoicePrediction]) -> np.ndarray:
        pairs = zip(_gold(examples), answers, strict=True)
        return np.array([[gold == answer.place, 1] for gold, answer in pairs], dtype=np.int64).reshape(-1, 2)

    def predict(self, questions: Sequence[tuple[Any, ...]]) -> list[ChoicePrediction]:
        """A choice for each question: (question, choices), or (question, choices, context); texts are strings or words."""
        found = []
        for each in questions:
            several = isinstance(each, Sized) and not isinstance(each, str) and len(each) in (2, 3)
            if not several or isinstance(each[1], str) or not each[1]:
                raise UsageError(f"expected a question and its choices, such as ('Who sat?', ['cat', 'mat']); got {each!r}")
            question, choices = as_text(each[0]), tuple(as_text(choice) for choice in each[1])
            found.append(ChoiceQuestion(question, choices, context=as_text(each[2]) if len(each) == 3 else None))
        return self.answer(self.data(found))

    # ---- asked by `polyseme predict`

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        """Lines with tabs, or the question and each choice as an argument."""
        if all("\t" in text for text in texts):
            return list(texts)
        if any("\t" in text for text in texts):
            what = "give each question with its choices as one TEXT, divided by tabs, or one question and its choices as TEXTs"
            raise UsageError(f"some TEXTs have tabs and some have not: {what}")
        return ["\t".join(texts)]

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> tuple[Sentence, list[Sentence]]:
        """A question and its choices, divided by tabs."""
        texts: list[Sentence] = [text.split() if split_on_spaces else text for text in line.split("\t")]
        if len(texts) < 3:
            given = "1 text" if len(texts) == 1 else f"{len(texts)} texts"
            raise FormatError(where, f"holds {given}; this task chooses: give a question and two choices or more, by tabs")
        return texts[0], texts[1:]

    # ---- errors

    def example_errors(
        self, examples: Sequence[ChoiceQuestion], answers: Sequence[ChoicePrediction], path: str | Path
    ) -> Iterator[ExampleError]:
        """PredictionError choices by their probabilities."""
        for example, gold, answer in zip(examples, _gold(examples), answers, strict=True):
            if answer.place != gold:
                where, text = location(path, example.where), _plain(example.question)
                right, sure = _plain(example.choices[gold]), answer.probability
                yield ExampleError.whole(where, text, right, answer.text, sure, probability=sure)


def _gold(examples: Sequence[ChoiceQuestion]) -> list[int]:
    """The right choices, none of them unknown."""
    found = [example.answer for example in examples if example.answer is not None]
    if len(found) < len(examples):
        raise UsageError(
            f"{len(examples) - len(found)} of {len(examples)} questions have no answer; training and scores need all"
        )
    return found


def _plain(text: Sentence) -> str:
    return text if isinstance(text, str) else " ".join(text)
