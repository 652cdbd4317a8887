"""Semantic role labelling: who did what to whom, when and where, for given predicates.

After He et al. 2017, the network behind the SRL row of Peters et al. 2018: the words, each with a learned vector that marks the
predicate, go through a deep LSTM of alternating directions, and the best valid sequence of tags is the output. An example is
one predicate in its sentence, so a sentence with three predicates is three examples with one text. The network learns BIOES
tags where the paper has BIO (fewer transitions are allowed), and predicts BIO.

The score counts arguments as the CoNLL-2005 scorer (srl-eval.pl, also used for CoNLL-2012) does:

    V         the predicate itself does not count, nor its continuation (C-V)
    C-A1      continues the A1 before it: both are one argument, right only with all its parts; without an A1 it is one
    R-A0      a reference (who, that) is an argument of its own, and its role is R-A0
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.batch import Sentence, whole_number
from polyseme.metrics.classes import Confusion
from polyseme.metrics.spans import PRFScore, spans
from polyseme.nn.crf import Crf
from polyseme.nn.highway_lstm import HighwayLstm
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import Task
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.error_analysis import (
    ExampleError,
    PredictionError,
    UnknownLabel,
    align_spans,
    location,
    span_confusion,
    tag_locations,
    unknown_span_types,
)
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.predictions import Predictions, SentenceRoles
from polyseme.tasks.roles_config import RolesConfig
from polyseme.tasks.splits import same_text
from polyseme.tasks.tag_scheme import allowed_transitions, from_bioes, scheme_labels, to_bioes
from polyseme.text.labelled.roles import VERB, Predicate, read_roles
from polyseme.text.words import Splitter

Parts = tuple[tuple[int, int], ...]
"""The first word, and the word behind the last, of each part of an argument."""
Argument = tuple[str, Parts]
"""A role, and the parts of its argument."""
RolesInput = tuple[Sentence, Sequence[int]]
"""A sentence, and the positions of its predicates, from 0."""
_NUMBERED = re.compile(r"(\d+(?:,\d+)*)[ \t]+(.*)")


@dataclass(frozen=True, slots=True)
class RoleExample:
    """One predicate in its sentence, with a tag for each word; no tags: they are to be predicted."""

    words: list[str]
    predicate: int
    """Its position, from 0."""
    tags: list[str]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """The line of each word in its file, for messages."""


@dataclass(frozen=True)
class RoleTargets:
    """What the loss compares with, on the device."""

    predicates: Tensor
    """(batch, words): 1 at the predicate, else 0."""
    tags: Tensor
    """(batch, words): numbers of the gold tags."""


class Roles(Task):
    """A semantic role labeller; an output is a list of BIO tags."""

    kind = "roles"
    texts_per_line = 0
    main_metric = "f1"
    config_type = RolesConfig
    config: RolesConfig
    multi_line = True

    def __init__(self, config: RolesConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        self._ids = {label: number for number, label in enumerate(self.labels)}
        self.predicate = nn.Embedding(2, config.predicate_dim)
        inputs = features.width("input") + config.predicate_dim
        self.recurrent = HighwayLstm(inputs, config.hidden_size, config.layers, dropout=config.dropout)
        self.scores = nn.Linear(self.recurrent.dim + features.width("output"), len(self.labels))
        self.crf = Crf(len(self.labels), **allowed_transitions(self.labels), learn=config.crf)

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[RoleExample]:
        sentences = read_roles(path, strict=config.strict)
        examples = [
            RoleExample(each.words, one.position, one.tags, each.lines) for each in sentences for one in each.predicates
        ]
        if not examples:
            raise FormatError(path, f"has {len(sentences)} sentences, but no predicates; roles need predicates")
        return examples

    @classmethod
    def split_groups(cls, examples: Sequence[RoleExample], config: TaskConfig) -> list[list[Hashable]]:
        return [[same_text(example.words) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[RoleExample], config: TaskConfig) -> list[str]:
        return scheme_labels([each.tags for each in examples], "BIO")

    @classmethod
    def example_texts(cls, example: RoleExample, splitter: Splitter) -> list[list[str]]:
        return [example.words]

    def make_targets(self, examples: Sequence[RoleExample], inputs: list[TextInputs]) -> RoleTargets:
        tags = np.zeros(tuple(inputs[0].mask.shape), dtype=np.int64)
        for row, example in enumerate(examples):
            tags[row, : len(example.tags)] = [self._ids[tag] for tag in to_bioes(example.tags, "BIO")]
        return RoleTargets(self._predicates(examples, tags.shape[1]), to_device(torch.from_numpy(tags), self.features.device))

    def _predicates(self, examples: Sequence[RoleExample], width: int) -> Tensor:
        """(batch, words): 1 at each example's predicate."""
        marks = np.zeros((len(examples), width), dtype=np.int64)
        marks[np.arange(len(examples)), [example.predicate for example in examples]] = 1
        return to_device(torch.from_numpy(marks), self.features.device)

    # ---- network

    def _scores(self, text: TextVectors, predicates: Tensor) -> Tensor:
        """(batch, words, labels)."""
        states = self.recurrent(torch.cat([text.at_input, self.predicate(predicates)], dim=2), text.mask, text.lengths)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=2)
        return self.scores(states).float()

    def summed_loss(self, texts: list[TextVectors], targets: RoleTargets) -> tuple[Tensor, int]:
        scores, mask = self._scores(texts[0], targets.predicates), texts[0].mask
        words = int(texts[0].lengths.sum())
        if self.config.crf:
            return self.crf.loss(scores, targets.tags, mask).sum(), words
        return (F.cross_entropy(scores.transpose(1, 2), targets.tags, reduction="none") * mask).sum(), words

    def decode(self, texts: list[TextVectors], examples: Sequence[RoleExample]) -> list[list[str]]:
        scores = self._scores(texts[0], self._predicates(examples, texts[0].mask.shape[1]))
        paths = self.crf.decode(scores, texts[0].mask)
        return [from_bioes([self.labels[number] for number in path], "BIO") for path in paths]

    # ---- predictions

    def score(self, examples: Sequence[RoleExample], outputs: Sequence[list[str]]) -> dict[str, float]:
        counts = self.score_counts(examples, outputs)
        right, predicted, gold = counts.sum(0).tolist()
        scores = PRFScore(gold, predicted, right)
        perfect = float((counts == counts[:, :1]).all(1).mean()) if len(counts) else 0.0
        return {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall, "perfect": perfect}

    def score_counts(self, examples: Sequence[RoleExample], outputs: Sequence[list[str]]) -> np.ndarray:
        pairs = [(arguments(each.tags), arguments(tags)) for each, tags in zip(examples, outputs, strict=True)]
        counts = [[len(gold & predicted), len(predicted), len(gold)] for gold, predicted in pairs]
        return np.array(counts, dtype=np.int64).reshape(-1, 3)

    def predict(self, texts: Sequence[RolesInput]) -> Predictions[SentenceRoles]:
        """Predict the roles of words, for sentences with the positions of their predicates; a string is split into words.

        >>> labeller.predict([(["Ann", "saw", "Bob", "leave"], [1, 3])])     # doctest: +SKIP
        [SentenceRoles(words=['Ann', 'saw', 'Bob', 'leave'], predicates=[
            Predicate(position=1, tags=['B-ARG0', 'B-V', 'B-ARG1', 'I-ARG1']),
            Predicate(position=3, tags=['O', 'O', 'B-ARG0', 'B-V'])])]
        """
        inputs = [self._checked(given) for given in texts]
        outputs = iter(self.predict_data(self.data([RoleExample(words, at, []) for words, all in inputs for at in all])))
        return Predictions(SentenceRoles(words, [Predicate(at, next(outputs)) for at in all]) for words, all in inputs)

    def _checked(self, given: RolesInput) -> tuple[list[str], list[int]]:
        two = isinstance(given, Sized) and not isinstance(given, str) and len(given) == 2
        if not two or isinstance(given[1], (str, int)):
            raise UsageError(
                f"got {given!r}; expected a sentence and the positions of its predicates, from 0: ('Ann saw Bob', [1])"
            )
        words, positions = self.words(given[0]), [_position(each) for each in given[1]]
        for position in positions:
            if not 0 <= position < len(words):
                raise UsageError(f"there is no word {position} in {words}: it has {len(words)} words, counted from 0")
        return words, positions

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> RolesInput:
        """Return the text of a line, and the numbers of predicates before it: from 0, with commas between."""
        match = _NUMBERED.fullmatch(line)
        if match is None:
            what = f"begins with {line[:20]!r}; expected the numbers of predicates, from 0, before the text"
            raise FormatError(where, f"{what}: 1,3 Ann saw Bob leave")
        words = match[2].split() if split_on_spaces else self.words(match[2])
        positions = [int(number) for number in match[1].split(",")]
        if max(positions) >= len(words):
            raise FormatError(where, f"has no word {max(positions)}: its words are {' '.join(words)!r}, counted from 0")
        return words, positions

    def example_json(self, example: RoleExample, output: list[str], path: str | Path) -> dict[str, Any]:
        found = SentenceRoles(example.words, [Predicate(example.predicate, output)])
        return {"where": _location(example, path), "gold": example.tags, **found.to_json()}

    # ---- error analysis

    def confusion_matrix(self, examples: Sequence[RoleExample], outputs: Sequence[list[str]]) -> Confusion | None:
        """Of the roles of arguments."""
        both = zip(examples, outputs, strict=True)
        return span_confusion([pair for example, tags in both for pair in _aligned(example.tags, tags).values()])

    def example_errors(
        self, examples: Sequence[RoleExample], outputs: Sequence[list[str]], path: str | Path
    ) -> Iterator[ExampleError]:
        """Predicates by the number of their wrong arguments; the predicate is in brackets."""
        for example, tags in zip(examples, outputs, strict=True):
            words, at = example.words, example.predicate
            aligned = _aligned(example.tags, tags).items()
            errors = [PredictionError(_argument_text(words, parts), *pair) for parts, pair in aligned if pair[0] != pair[1]]
            if errors:
                marked = [*words[:at], f"[{words[at]}]", *words[at + 1 :]]
                yield ExampleError(_location(example, path), " ".join(marked), errors, len(errors))

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[RoleExample], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        return unknown_span_types((tag for each in examples for tag in tag_locations(each.tags, each.lines, path)), labels)


# ---- arguments, as they are counted


def arguments(tags: Sequence[str]) -> set[Argument]:
    """Return the arguments of a predicate from its tags, without the predicate itself.

    >>> sorted(arguments(["B-A1", "B-V", "B-R-A0", "B-C-A1", "I-C-A1"]))
    [('A1', ((0, 1), (3, 5))), ('R-A0', ((2, 3),))]
    """
    found: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}  # the parts of the last argument of each role
    for begin, end, kind in spans(tags):
        role = kind.removeprefix("C-")
        if kind != role and role in latest:
            latest[role].append((begin, end))
        else:
            latest[role] = [(begin, end)]
            found.append((role, latest[role]))
    return {(role, tuple(parts)) for role, parts in found if role != VERB}


def _aligned(gold: Sequence[str], tags: Sequence[str]) -> dict[Parts, tuple[str, str]]:
    """The gold and the predicted role of each argument, by its parts."""
    return align_spans(*({parts: role for role, parts in arguments(side)} for side in (gold, tags)))


def _position(given: Any) -> int:
    """Return the position of a predicate; refuse numbers between two words, and masks."""
    position = whole_number(given)
    if position is None:
        raise UsageError(f"got {given!r} as the position of a predicate; expected a whole number, from 0: ('Ann saw Bob', [1])")
    return position


def _location(example: RoleExample, path: str | Path) -> str:
    return location(path, example.lines[example.predicate] if example.lines else None)


def _argument_text(words: Sequence[str], parts: Parts) -> str:
    return " ... ".join(" ".join(words[begin:end]) for begin, end in parts)
