"""What tasks tell of their errors: wrong answers, labels that they do not know, and what several tasks need to tell them.

Spans are told apart by their types. A span that was found with its begin and end is right or has the wrong type; one that was
not is missed (the answer is "none"), and one that is not in the truth is invented (the truth is "none"). So a wrong border
counts twice, as it does in F1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from polyseme.base.errors import FormatError
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.spans import are_span_tags

NONE = "none"
Label = tuple[str, str]
"""A label, and the file and line where it stands."""
Place = TypeVar("Place", bound=tuple[Any, ...])


class Labelled(Protocol):
    """An example with one label."""

    @property
    def label(self) -> str | None:
        """None: not known."""

    @property
    def where(self) -> int | None:
        """The line of its file, if it is known."""


@dataclass(frozen=True)
class PredictionError:
    """An answer that is not the truth; for taggers, that of a word or a span."""

    text: str
    truth: str
    answer: str


@dataclass(frozen=True)
class ExampleError:
    """An example that was answered wrongly."""

    where: str
    """File and line."""
    text: str
    wrong: list[PredictionError]
    weight: float
    """How bad it is: wrong words or spans, the probability of a wrong label, how far off a score is, or what F1 lacks."""
    probability: float | None = None
    """That the network gave to its answer, where it chose among several."""

    @classmethod
    def whole(cls, where: str, text: str, truth: str, answer: str, weight: float, *, probability: float | None = None) -> Self:
        """Of an example that has one answer."""
        return cls(where, text, [PredictionError(text, truth, answer)], weight, probability)


@dataclass(frozen=True)
class UnknownLabel:
    """A label that a task does not know."""

    where: str
    """File and line where it comes first."""
    label: str
    times: int

    def __str__(self) -> str:
        return f"{self.where}: has the label {self.label!r}" + (f" ({self.times:,} times)" if self.times > 1 else "")


def location(path: str | Path, line: int | None) -> str:
    """A file and its line, where that is known.

    >>> location("dev.tsv", 3), location("dev.tsv", None)
    ('dev.tsv:3', 'dev.tsv')
    """
    return str(path) if line is None else f"{path}:{line}"


# ---- labels


def find_unknown_labels(labels: Iterable[Label], known: Iterable[str]) -> list[UnknownLabel]:
    """The labels that are none of the known ones, each with the line where it comes first.

    >>> find_unknown_labels([("x", "f:1"), ("y", "f:2"), ("y", "f:3")], ["x"])
    [UnknownLabel(where='f:2', label='y', times=2)]
    """
    expected, firsts, times = set(known), dict[str, str](), Counter[str]()
    for label, where in labels:
        if label not in expected:
            firsts.setdefault(label, where)
            times[label] += 1
    return [UnknownLabel(where, label, times[label]) for label, where in firsts.items()]


def unknown_example_labels(examples: Iterable[Labelled], known: Iterable[str], path: str | Path) -> list[UnknownLabel]:
    """The same of the labels of examples."""
    return find_unknown_labels(((str(example.label), location(path, example.where)) for example in examples), known)


def tag_locations(tags: Sequence[str], lines: Sequence[int], path: str | Path) -> Iterator[Label]:
    """The tags of a sentence whose words stand on these lines, if they are known."""
    return ((tag, location(path, lines[place] if lines else None)) for place, tag in enumerate(tags))


def unknown_span_types(tags: Iterable[Label], known: Iterable[str]) -> list[UnknownLabel]:
    """The types of spans that none of the known tags has; tags that are of no span at all cannot be scored.

    >>> unknown_span_types([("O", "f:1"), ("B-Z", "f:2"), ("I-Z", "f:3")], ["O", "B-X", "E-X"])
    [UnknownLabel(where='f:2', label='Z', times=2)]
    """
    return find_unknown_labels(_types(tags), ["O", *(tag[2:] for tag in known if tag != "O")])


def _types(tags: Iterable[Label]) -> Iterator[Label]:
    for tag, where in tags:
        if tag != "O" and not are_span_tags([tag]):
            raise FormatError(where, f"has the tag {tag!r}, but the tagger learns spans (O, B-TYPE, I-TYPE): is it the column?")
        yield tag if tag == "O" else tag[2:], where


# ---- what is taken for what


def align_spans(truth: Mapping[Place, str], found: Mapping[Place, str]) -> dict[Place, tuple[str, str]]:
    """For each place of the truth or the answer, in order: its type in both.

    >>> align_spans({(0, 2): "PER"}, {(0, 1): "PER"})
    {(0, 1): ('none', 'PER'), (0, 2): ('PER', 'none')}
    """
    return {place: (truth.get(place, NONE), found.get(place, NONE)) for place in sorted({**truth, **found})}


def span_confusion(pairs: Sequence[tuple[str, str]]) -> Confusion | None:
    """How often each type, or none, was taken for each; None where there was nothing to find and nothing found."""
    if not pairs:
        return None
    labels = sorted({label for pair in pairs for label in pair} - {NONE})
    truth, answer = zip(*pairs, strict=True)
    return confusion(truth, answer, labels=[*labels, NONE])
