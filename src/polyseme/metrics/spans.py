"""Precision, recall and F1 of spans (names, phrases) that are written as tags.

One reading serves BIO, IOB1, BIOES, BILOU and BMES, legal or not, as that of the CoNLL scorer: a span begins at B or S, at
any other letter behind O or behind the end of a span, and wherever the type changes; it ends after E or S, before a
beginning and before O. A predicted span is right where its begin, end and type are those of a span in the truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polyseme.base.errors import UsageError

TypedSpan = tuple[int, int, str]
"""First word, the word behind the last, type."""
_TAG = re.compile(r"([BIMESWLU])(?:-(.+))?")
_ONE_LETTER_FOR_EACH = {"M": "I", "L": "E", "W": "S", "U": "S"}


@dataclass(frozen=True)
class PRFScore:
    """How well spans were found."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Right among the predicted; 0 where there is none."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Right among those to be found; 0 where there is none."""
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
    """The spans of one sentence, in order.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [(0, 2, 'PER'), (3, 4, 'LOC'), (4, 5, 'LOC')]
    """
    found: list[TypedSpan] = []
    begin, before, kind = 0, "O", ""
    for place, tag in enumerate([*tags, "O"]):
        letter, new_kind = _parts(tag)
        goes_on = letter in "IE" and before in "BI" and new_kind == kind
        if before != "O" and not goes_on:
            found.append((begin, place, kind))
        if letter != "O" and not goes_on:
            begin = place
        before, kind = letter, new_kind
    return found


def _parts(tag: str) -> tuple[str, str]:
    if tag == "O":
        return "O", ""
    match = _TAG.fullmatch(tag)
    if match is None:
        raise UsageError(f"{tag!r} is no tag of a span; expected O, or B-TYPE, I-TYPE and so on")
    return _ONE_LETTER_FOR_EACH.get(match[1], match[1]), match[2] or ""


def span_scores(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> PRFScore:
    """Scores over all sentences, each a list of tags.

    >>> span_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]]).f1
    0.5
    """
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise UsageError("the truth and the answers differ in the number of sentences or of words")
    truth = [set(spans(tags)) for tags in gold]
    answers = [set(spans(tags)) for tags in predicted]
    right = sum(len(a & b) for a, b in zip(truth, answers, strict=True))
    return PRFScore(sum(map(len, truth)), sum(map(len, answers)), right)
