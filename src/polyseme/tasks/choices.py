"""Multiple choice: which of several answers to a question is right, or which of several endings follows.

As in Radford et al. 2018: the encoder reads the question, after its context where there is one, together with each choice as
one sequence (`polyseme.tasks.linear_head`), a head scores each such pair, and one softmax is over the choices of a question.
Questions may have different numbers of choices. Files are JSON lines (`polyseme.text.labelled.choices`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence, Sized
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
from polyseme.tasks.base import as_text, joined, to_words
from polyseme.tasks.choices_config import ChoicesConfig
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, location
from polyseme.tasks.features import Features
from polyseme.tasks.linear_head import LinearHead, SequenceInputs, SequenceLayout, SequenceTask, SequenceVectors
from polyseme.tasks.predictions import ChoicePrediction, Predictions, with_lines
from polyseme.tasks.splits import same_text
from polyseme.text.labelled.choices import ChoiceQuestion, read_choices
from polyseme.text.words import Splitter

LOWEST = -1e9  # the score of padding
_LABEL = "answer"  # the only label: each question has its own choices


@dataclass(frozen=True)
class _Targets:
    """What the loss compares with, on the device."""

    rows: Tensor
    """(questions, choices): the row of each choice's score; 0 for padding."""
    mask: Tensor
    """(questions, choices): True where a choice is."""
    answers: Tensor
    """(questions,): the right choices."""


class _ChoicesData(TaskData):
    """Questions; the texts of a batch are pairs of a question and a choice, for all its choices."""

    def __init__(self, examples: Sequence[ChoiceQuestion], texts: Sequence[list[list[str]]]) -> None:
        super().__init__(examples, texts)
        # padded words of an example, which bound the size of a batch
        self.lengths = [(len(each[0]) + max(map(len, each[1:]))) * (len(each) - 1) for each in self.texts]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        pairs = [(self.texts[row][0], choice) for row in rows for choice in self.texts[row][1:]]
        return ExampleBatch([self.examples[row] for row in rows], [list(slot) for slot in zip(*pairs, strict=True)], None)


class Choices(SequenceTask):
    """A multiple-choice network; an output is a `ChoicePrediction`."""

    kind = "choices"
    texts_per_line = 0
    config_type = ChoicesConfig
    config: ChoicesConfig
    main_metric = "accuracy"

    def __init__(self, config: ChoicesConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        self.network = LinearHead(
            config.linear_head,
            features,
            1,
            layout=SequenceLayout(texts=2, keep_end=True),  # the question follows its context, which may be too long
            hidden_size=config.hidden_size,
            dropout=config.dropout,
        )

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[ChoiceQuestion]:
        return read_choices(path, strict=config.strict)

    @classmethod
    def split_groups(cls, examples: Sequence[ChoiceQuestion], config: TaskConfig) -> list[list[Hashable]]:
        contexts = [same_text(example.context or example.question) for example in examples]
        return [contexts, [same_text(example.context, example.question) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[ChoiceQuestion], config: TaskConfig) -> list[str]:
        return [_LABEL]

    @classmethod
    def example_texts(cls, example: ChoiceQuestion, splitter: Splitter) -> list[list[str]]:
        before = [] if example.context is None else to_words(example.context, splitter)
        return [before + to_words(example.question, splitter), *(to_words(choice, splitter) for choice in example.choices)]

    def data(self, examples: Sequence[ChoiceQuestion]) -> TaskData:
        return _ChoicesData(examples, [self.example_texts(example, self.splitter) for example in examples])

    def make_targets(self, examples: Sequence[ChoiceQuestion], inputs: list[SequenceInputs]) -> _Targets:  # type: ignore[override]
        rows, mask = self._rows(examples)
        answers = to_device(torch.tensor(_gold(examples)), self.features.device)
        return _Targets(rows, mask, answers)

    def _rows(self, examples: Sequence[ChoiceQuestion]) -> tuple[Tensor, Tensor]:
        """Return (questions, choices) twice: the row of each choice's score, and where a choice is."""
        counts = torch.tensor([len(example.choices) for example in examples])
        steps = torch.arange(int(counts.max()))
        mask = steps < counts[:, None]
        rows = (counts.cumsum(0) - counts)[:, None] + steps
        return to_device(rows * mask, self.features.device), to_device(mask, self.features.device)

    # ---- network

    def summed_loss(self, texts: list[SequenceVectors], targets: _Targets) -> tuple[Tensor, int]:  # type: ignore[override]
        scores = self._scores(texts, targets.rows, targets.mask)
        return F.cross_entropy(scores, targets.answers, reduction="sum"), len(targets.answers)

    def _scores(self, texts: list[SequenceVectors], rows: Tensor, mask: Tensor) -> Tensor:
        """(questions, choices)."""
        each = self.network(*texts).float().squeeze(1)
        return each.index_select(0, rows.flatten()).view(rows.shape).masked_fill(~mask, LOWEST)

    def decode(self, texts: list[SequenceVectors], examples: Sequence[ChoiceQuestion]) -> list[ChoicePrediction]:  # type: ignore[override]
        rows = torch.softmax(self._scores(texts, *self._rows(examples)).double(), dim=1).tolist()
        predictions = []
        for example, row in zip(examples, rows, strict=True):
            choices, shares = [joined(choice) for choice in example.choices], row[: len(example.choices)]
            best = max(range(len(shares)), key=shares.__getitem__)
            predictions.append(ChoicePrediction(best, choices[best], shares[best], shares, choices))
        return predictions

    # ---- predictions

    def score(self, examples: Sequence[ChoiceQuestion], outputs: Sequence[ChoicePrediction]) -> dict[str, float]:
        score_counts = self.score_counts(examples, outputs)
        return {"accuracy": float(score_counts[:, 0].mean()) if len(score_counts) else 0.0}

    def score_counts(self, examples: Sequence[ChoiceQuestion], outputs: Sequence[ChoicePrediction]) -> np.ndarray:
        pairs = zip(_gold(examples), outputs, strict=True)
        return np.array([[gold == output.index, 1] for gold, output in pairs], dtype=np.int64).reshape(-1, 2)

    def predict(self, questions: Sequence[tuple[Any, ...]]) -> Predictions[ChoicePrediction]:
        """Choose for each question: (question, choices), or (question, choices, context); texts are strings or words."""
        examples = []
        for each in questions:
            several = isinstance(each, Sized) and not isinstance(each, str) and len(each) in (2, 3)
            if not several or isinstance(each[1], str) or not each[1]:
                raise UsageError(f"expected a question and its choices, such as ('Who sat?', ['cat', 'mat']); got {each!r}")
            question, choices = as_text(each[0]), tuple(as_text(choice) for choice in each[1])
            examples.append(ChoiceQuestion(question, choices, context=as_text(each[2]) if len(each) == 3 else None))
        return with_lines(self.predict_data(self.data(examples)), [_line(each) for each in examples])

    def example_json(self, example: ChoiceQuestion, output: ChoicePrediction, path: str | Path) -> dict[str, Any]:
        gold = {"where": location(path, example.where), "gold": joined(example.choices[_gold([example])[0]])}
        return {**gold, **output.to_json(_line(example))}

    # ---- lines of `polyseme predict`

    def lines_from_arguments(self, texts: Sequence[str]) -> list[str]:
        """Return lines with tabs as they are, or join a question and its choices."""
        if all("\t" in text for text in texts):
            return list(texts)
        if any("\t" in text for text in texts):
            what = "give each question with its choices as one TEXT with tabs between, or a question and its choices as TEXTs"
            raise UsageError(f"some TEXTs have tabs and some have not: {what}")
        return ["\t".join(texts)]

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> tuple[Sentence, list[Sentence]]:
        """Return a question and its choices, which tabs separate."""
        texts: list[Sentence] = [text.split() if split_on_spaces else text for text in line.split("\t")]
        if len(texts) < 3:
            given = "1 text" if len(texts) == 1 else f"{len(texts)} texts"
            raise FormatError(where, f"has {given}; give a question and two choices or more, with tabs between")
        return texts[0], texts[1:]

    # ---- error analysis

    def example_errors(
        self, examples: Sequence[ChoiceQuestion], outputs: Sequence[ChoicePrediction], path: str | Path
    ) -> Iterator[ExampleError]:
        """Wrong choices by their probabilities."""
        for example, gold, output in zip(examples, _gold(examples), outputs, strict=True):
            if output.index != gold:
                where, text = location(path, example.where), joined(example.question)
                right, sure = joined(example.choices[gold]), output.probability
                yield ExampleError.single(where, text, right, output.text, sure, probability=sure)


def _gold(examples: Sequence[ChoiceQuestion]) -> list[int]:
    """Return the right choices; refuse questions without one."""
    found = [example.answer for example in examples if example.answer is not None]
    if len(found) < len(examples):
        raise UsageError(
            f"{len(examples) - len(found)} of {len(examples)} questions have no answer; training and scores need all"
        )
    return found


def _line(question: ChoiceQuestion) -> str:
    """The texts as a line of `polyseme predict`."""
    return "\t".join(map(joined, (question.question, *question.choices)))
