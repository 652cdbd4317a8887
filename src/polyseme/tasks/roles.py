"""Semantic role labelling: who did what to whom, when and where, for a predicate that is given.

After He et al. 2017, the network behind the SRL row of Peters et al. 2018: the words, beside a learned vector that marks the
predicate, go through a deep LSTM of alternating directions, and each word gets a tag; the best sequence of tags that makes
sense is the answer. An example is one predicate in its sentence: a sentence with three predicates is three examples with one
text. The network learns BIOES tags where the paper has BIO (fewer moves are possible), and what it gives is BIO again.

The score counts arguments as the CoNLL-2005 scorer (srl-eval.pl, also used for CoNLL-2012) does:

    V         the predicate itself does not count, nor does what continues it (C-V)
    C-A1      continues the A1 before it: both are one argument, right only with all its pieces; without an A1 it is one
    R-A0      a reference (who, that) is an argument of its own, and its role is R-A0
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence, Sized
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
from polyseme.tasks.roles_config import RolesConfig
from polyseme.tasks.tag_scheme import allowed_transitions, collect_labels, from_bioes, to_bioes
from polyseme.text.labelled.roles import VERB, Predicate, RoleSentence, read_roles
from polyseme.text.words import Splitter

Pieces = tuple[tuple[int, int], ...]
"""The first word and the word behind the last of each piece of an argument."""
Argument = tuple[str, Pieces]
"""A role, and its pieces."""
Question = tuple[Sentence, Sequence[int]]
"""A sentence, and the places of its predicates among its words, from 0."""
_NUMBERED = re.compile(r"(\d+(?:,\d+)*)[ \t]+(.*)")


@dataclass(frozen=True, slots=True)
class RoleExample:
    """One predicate in its sentence, with a tag for each word; no tags: they are asked for."""

    words: list[str]
    place: int
    """Of the predicate, from 0."""
    tags: list[str]
    lines: list[int] = field(default_factory=list, repr=False, compare=False)
    """Where each word stands in its file, for messages."""


@dataclass(frozen=True)
class RoleTargets:
    """What the loss needs, on the device."""

    marks: Tensor
    """(batch, words): 1 at the predicate, else 0."""
    tags: Tensor
    """(batch, words): numbers of the right tags."""


class Roles(Task):
    """A labeller of roles; an answer is a list of BIO tags."""

    kind = "roles"
    main_metric = "f1"
    config_type = RolesConfig
    config: RolesConfig
    multi_line = True

    def __init__(self, config: RolesConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        self._ids = {label: number for number, label in enumerate(self.labels)}
        self.predicate = nn.Embedding(2, config.predicate_dim)
        inputs = features.width("input") + config.predicate_dim
        self.recurrent = HighwayLstm(inputs, config.hidden_size, config.layers, dropout=config.dropout)
        self.scores = nn.Linear(self.recurrent.dim + features.width("output"), len(self.labels))
        self.crf = Crf(len(self.labels), **allowed_transitions(self.labels), learn=config.crf)

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[RoleExample]:
        sentences = read_roles(path)
        found = [RoleExample(each.words, one.position, one.tags, each.lines) for each in sentences for one in each.predicates]
        if not found:
            raise FormatError(path, f"has {len(sentences)} sentences, but no predicate in any; roles need predicates")
        return found

    @classmethod
    def collect_labels(cls, examples: Sequence[RoleExample], config: TaskConfig) -> list[str]:
        return collect_labels([each.tags for each in examples], "BIO")

    @classmethod
    def example_texts(cls, example: RoleExample, cut: Splitter) -> list[list[str]]:
        return [example.words]

    def make_targets(self, examples: Sequence[RoleExample], inputs: list[TextInputs]) -> RoleTargets:
        tags = np.zeros(tuple(inputs[0].mask.shape), dtype=np.int64)
        for row, example in enumerate(examples):
            tags[row, : len(example.tags)] = [self._ids[tag] for tag in to_bioes(example.tags, "BIO")]
        return RoleTargets(self._marks(examples, tags.shape[1]), to_device(torch.from_numpy(tags), self.features.device))

    def _marks(self, examples: Sequence[RoleExample], width: int) -> Tensor:
        """(batch, words): 1 at each example's predicate."""
        marks = np.zeros((len(examples), width), dtype=np.int64)
        marks[np.arange(len(examples)), [example.place for example in examples]] = 1
        return to_device(torch.from_numpy(marks), self.features.device)

    # ---- network

    def _scores(self, text: TextVectors, marks: Tensor) -> Tensor:
        """(batch, words, labels)."""
        states = self.recurrent(torch.cat([text.at_input, self.predicate(marks)], dim=2), text.mask, text.lengths)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=2)
        return self.scores(states).float()

    def losses(self, texts: list[TextVectors], targets: RoleTargets) -> tuple[Tensor, int]:
        scores, mask = self._scores(texts[0], targets.marks), texts[0].mask
        words = int(texts[0].lengths.sum())
        if self.config.crf:
            return self.crf.loss(scores, targets.tags, mask).sum(), words
        return (F.cross_entropy(scores.transpose(1, 2), targets.tags, reduction="none") * mask).sum(), words

    def answers(self, texts: list[TextVectors], examples: Sequence[RoleExample]) -> list[list[str]]:
        scores = self._scores(texts[0], self._marks(examples, texts[0].mask.shape[1]))
        paths = self.crf.decode(scores, texts[0].mask)
        return [from_bioes([self.labels[number] for number in path], "BIO") for path in paths]

    # ---- answers

    def score(self, examples: Sequence[RoleExample], answers: Sequence[list[str]]) -> dict[str, float]:
        score_counts = self.score_counts(examples, answers)
        right, predicted, gold = score_counts.sum(0).tolist()
        found = PRFScore(gold, predicted, right)
        perfect = float((score_counts == score_counts[:, :1]).all(1).mean()) if len(score_counts) else 0.0
        return {"f1": found.f1, "precision": found.precision, "recall": found.recall, "perfect": perfect}

    def score_counts(self, examples: Sequence[RoleExample], answers: Sequence[list[str]]) -> np.ndarray:
        pairs = [(arguments(each.tags), arguments(tags)) for each, tags in zip(examples, answers, strict=True)]
        counts = [[len(gold & found), len(found), len(gold)] for gold, found in pairs]
        return np.array(counts, dtype=np.int64).reshape(-1, 3)

    def predict(self, texts: Sequence[Question]) -> list[RoleSentence]:
        """The roles of sentences with the places of their predicates; a string is split into words.

        >>> labeller.predict([(["Ann", "saw", "Bob", "leave"], [1, 3])])     # doctest: +SKIP
        [RoleSentence(words=['Ann', 'saw', 'Bob', 'leave'], predicates=[
            Predicate(position=1, tags=['B-ARG0', 'B-V', 'B-ARG1', 'I-ARG1']),
            Predicate(position=3, tags=['O', 'O', 'B-ARG0', 'B-V'])])]
        """
        sentences = [self._sentence(question) for question in texts]
        asked = [RoleExample(each.words, one.position, []) for each in sentences for one in each.predicates]
        answers = iter(self.answer(self.data(asked)))
        return [
            RoleSentence(each.words, [Predicate(one.position, next(answers)) for one in each.predicates]) for each in sentences
        ]

    def _sentence(self, question: Question) -> RoleSentence:
        two = isinstance(question, Sized) and not isinstance(question, str) and len(question) == 2
        if not two or isinstance(question[1], (str, int)):
            raise UsageError(
                f"got {question!r}; expected a sentence and the places of its predicates, from 0: "
                "('Ann saw Bob', [1]). Roles are told of predicates that are given"
            )
        words, places = self.words(question[0]), [_place(each) for each in question[1]]
        for place in places:
            if not 0 <= place < len(words):
                raise UsageError(f"there is no word {place} in {words}; its {len(words)} words are counted from 0")
        return RoleSentence(words, [Predicate(place, []) for place in places])

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Question:
        """The numbers of predicates, from 0 and divided by commas, stand before the text."""
        match = _NUMBERED.fullmatch(line)
        if match is None:
            what = f"begins with {line[:20]!r}; this task tells roles for given predicates: first their numbers, from 0"
            raise FormatError(where, f"{what}, then the text, such as 1,3 Ann saw Bob leave")
        words = match[2].split() if split_on_spaces else self.words(match[2])
        places = [int(number) for number in match[1].split(",")]
        if max(places) >= len(words):
            raise FormatError(where, f"has no word {max(places)}: its words are {' '.join(words)!r}, counted from 0")
        return words, places

    def prediction_lines(self, asked: str, answer: RoleSentence) -> list[str]:
        """Words, and a tag of each for every predicate."""
        columns = (predicate.tags for predicate in answer.predicates)
        return ["\t".join(row) for row in zip(answer.words, *columns, strict=True)]

    def prediction_values(self, asked: str, answer: RoleSentence) -> dict[str, Any]:
        told = [{"index": predicate.position, "tags": predicate.tags} for predicate in answer.predicates]
        return {"words": answer.words, "predicates": told}

    # ---- errors

    def confusion_matrix(self, examples: Sequence[RoleExample], answers: Sequence[list[str]]) -> Confusion | None:
        """Of the roles of arguments."""
        both = zip(examples, answers, strict=True)
        return span_confusion([pair for example, tags in both for pair in _compared(example.tags, tags).values()])

    def example_errors(
        self, examples: Sequence[RoleExample], answers: Sequence[list[str]], path: str | Path
    ) -> Iterator[ExampleError]:
        """Predicates by the number of their wrong arguments; the predicate stands in brackets."""
        for example, tags in zip(examples, answers, strict=True):
            words, compared = example.words, _compared(example.tags, tags).items()
            wrong = [PredictionError(_told(words, pieces), *pair) for pieces, pair in compared if pair[0] != pair[1]]
            if wrong:
                where = location(path, example.lines[example.place] if example.lines else None)
                marked = [*words[: example.place], f"[{words[example.place]}]", *words[example.place + 1 :]]
                yield ExampleError(where, " ".join(marked), wrong, len(wrong))

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[RoleExample], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        return unknown_span_types((tag for each in examples for tag in tag_locations(each.tags, each.lines, path)), labels)


# ---- arguments, as they are counted


def arguments(tags: Sequence[str]) -> set[Argument]:
    """The arguments of a predicate from its tags, without the predicate itself.

    >>> sorted(arguments(["B-A1", "B-V", "B-R-A0", "B-C-A1", "I-C-A1"]))
    [('A1', ((0, 1), (3, 5))), ('R-A0', ((2, 3),))]
    """
    found: list[tuple[str, list[tuple[int, int]]]] = []
    latest: dict[str, list[tuple[int, int]]] = {}  # of each role, the pieces of its last argument
    for begin, end, kind in spans(tags):
        role = kind.removeprefix("C-")
        if kind != role and role in latest:
            latest[role].append((begin, end))
        else:
            latest[role] = [(begin, end)]
            found.append((role, latest[role]))
    return {(role, tuple(pieces)) for role, pieces in found if role != VERB}


def _compared(gold: Sequence[str], tags: Sequence[str]) -> dict[Pieces, tuple[str, str]]:
    """For each argument of the truth or the answer, by its pieces: its role in both."""
    truth, found = ({pieces: role for role, pieces in arguments(side)} for side in (gold, tags))
    return align_spans(truth, found)


def _place(given: Any) -> int:
    """The place of a predicate; neither a number between two words nor a mask, which would be read as places 0 and 1."""
    place = whole_number(given)
    if place is None:
        raise UsageError(f"got {given!r} for the place of a predicate; expected a whole number, from 0: ('Ann saw Bob', [1])")
    return place


def _told(words: Sequence[str], pieces: Pieces) -> str:
    """The words of an argument."""
    return " ... ".join(" ".join(words[begin:end]) for begin, end in pieces)


def role_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, PRFScore]:
    """For each role of the truth or the answers, how well it was found; the most frequent first.

    >>> role_scores([["B-A0", "B-V", "B-A1"]], [["B-A0", "B-V", "B-A2"]])["A0"].f1
    1.0
    """
    wanted, given, right = Counter[str](), Counter[str](), Counter[str]()
    for truth, answer in zip(map(arguments, gold), map(arguments, predicted), strict=True):
        for counts, some in ((wanted, truth), (given, answer), (right, truth & answer)):
            counts.update(role for role, _ in some)
    roles = sorted(wanted | given, key=lambda role: (-wanted[role], role))
    return {role: PRFScore(wanted[role], given[role], right[role]) for role in roles}
