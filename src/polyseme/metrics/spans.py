"""Precision, recall and F1 of spans (names, phrases) that are written as tags.

One rule reads BIO, IOB1, BIOES, BILOU and BMES, valid or not, as the CoNLL scorer does: a span begins at B or S, at any other
letter after O or after the end of a span, and wherever the type changes; it ends after E or S, before a begin and before O. A
predicted span is correct if a gold span has the same begin, end and type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import UsageError

TypedSpan = tuple[int, int, str]
"""First word, the word after the last, type."""
_TAG = re.compile(r"([BIMESWLU])(?:-(.+))?")
_SAME_AS = {"M": "I", "L": "E", "W": "S", "U": "S"}


@dataclass(frozen=True)
class PRFScore:
    """Counts of spans or labels, with precision, recall and F1."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Correct / predicted; 0 if there are none."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Correct / gold; 0 if there are none."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.correct / (self.gold + self.predicted) if self.correct else 0.0


def are_span_tags(tags: Iterable[str]) -> bool:
    """Whether all tags are O or a letter of a span scheme with a type, and not all are O.

    >>> are_span_tags(["O", "B-PER", "E-PER"]), are_span_tags(["NOUN", "O"])
    (True, False)
    """
    distinct = set(tags)
    return bool(distinct - {"O"}) and all(tag == "O" or _TAG.fullmatch(tag) for tag in distinct)


def spans(tags: Sequence[str]) -> list[TypedSpan]:
    """Return the spans of one sentence, in order.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC'), (4, 5, 'LOC')]
    """
    result: list[TypedSpan] = []
    begin, before, kind = 0, "O", ""
    for position, tag in enumerate([*tags, "O"]):
        letter, new_kind = _parts(tag)
        continues = letter in "IE" and before in "BI" and new_kind == kind
        if before != "O" and not continues:
            result.append((begin, position, kind))
        if letter != "O" and not continues:
            begin = position
        before, kind = letter, new_kind
    return result


def _parts(tag: str) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    match = _TAG.fullmatch(tag)
    if match is None:
        raise UsageError(f"{tag!r} is not a span tag; expected O, B-TYPE, I-TYPE and so on")
    return _SAME_AS.get(match[1], match[1]), match[2] or ""


def span_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> PRFScore:
    """Return the scores over all sentences, each a list of tags.

    >>> span_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]]).f1
    0.5
    """
    correct, given, wanted = map(int, span_statistics(gold, predicted).sum(0))
    return PRFScore(wanted, given, correct)


def span_statistics(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return correct, predicted and gold spans of each sentence, (sentences, 3), for `bootstrap.f1_score`."""
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise UsageError("gold and predicted tags differ in the number of sentences or words")
    pairs = [(set(spans(truth)), set(spans(answer))) for truth, answer in zip(gold, predicted, strict=True)]
    return np.array([[len(truth & answer), len(answer), len(truth)] for truth, answer in pairs], np.float64).reshape(-1, 3)
