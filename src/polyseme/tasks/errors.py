"""Where a trained task goes wrong: what is taken for what, the worst answers, and labels that it cannot know.

Spans are told apart by their types. A span that was found with its begin and end is right or has the wrong type; one that was
not is missed (the answer is "none"), and one that is not in the truth is invented (the truth is "none"). So a wrong border
counts twice, as it does in F1.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.encoders.base import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.spans import are_span_tags, spans
from polyseme.tasks.base import Task, TaskConfig
from polyseme.tasks.pairs import LabelledPair, Score
from polyseme.tasks.tagging import TaggingConfig
from polyseme.text.conll import Tagged

NONE = "none"


@dataclass(frozen=True)
class Wrong:
    """An answer that is not the truth; for taggers, that of a word or a span."""

    text: str
    truth: str
    answer: str


@dataclass(frozen=True)
class Mistake:
    """An example that was answered wrongly."""

    where: str
    """File and line."""
    text: str
    wrong: list[Wrong]
    weight: float
    """How bad it is: wrong words or spans, the probability of a wrong label, or how far off a score is."""
    probability: float | None = None
    """That the network gave to its answer, where it chose among labels."""


@dataclass(frozen=True)
class Strange:
    """A label that a task does not know."""

    where: str
    """File and line where it comes first."""
    label: str
    times: int

    def __str__(self) -> str:
        return f"{self.where}: has the label {self.label!r}" + (f" ({self.times:,} times)" if self.times > 1 else "")


@dataclass(frozen=True)
class Report:
    """How well a task answers a file."""

    scores: dict[str, float]
    main: str
    examples: int
    confusion: Confusion | None
    """Of labels, plain tags or types of spans; None where answers are numbers, or there is nothing to tell apart."""
    worst: list[Mistake]
    strange: list[Strange]

    def confused(self, count: int) -> list[tuple[str, str, int]]:
        """What was most often taken for what: truth, answer, times."""
        if self.confusion is None:
            return []
        labels, counts = self.confusion.labels, self.confusion.counts
        places = [(a, b) for a in range(len(labels)) for b in range(len(labels)) if a != b and counts[a, b]]
        places.sort(key=lambda place: -counts[place])
        return [(labels[a], labels[b], int(counts[a, b])) for a, b in places[:count]]


def report(task: Task, path: str | Path, *, errors: int = 10) -> Report:
    """Answer the examples of a file and look at the answers; the worst `errors` of them are kept."""
    examples = task.read(path, task.config)
    strange = strange_labels(task.config, task.labels, examples, path)
    answers = task.answer(task.data(examples))
    if isinstance(task.config, TaggingConfig):
        plain = task.config.scheme == "plain"
        gold = [example.tags for example in examples]
        table = _confusion_of_tags(gold, answers) if plain else _confusion_of_spans(gold, answers)
        mistakes = list(_tagging_mistakes(examples, answers, path, plain=plain))
    else:
        numbers = any(isinstance(answer, Score) for answer in answers)
        table = None if numbers else confusion([example.label for example in examples], [each.label for each in answers])
        mistakes = list(_text_mistakes(examples, answers, path))
    worst = sorted(mistakes, key=lambda mistake: -mistake.weight)[:errors]
    return Report(task.score(examples, answers), task.main, len(examples), table, worst, strange)


# ---- what is taken for what


def _confusion_of_tags(gold: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> Confusion:
    return confusion(list(itertools.chain(*gold)), list(itertools.chain(*answers)))


def _confusion_of_spans(gold: Sequence[Sequence[str]], answers: Sequence[Sequence[str]]) -> Confusion | None:
    pairs = [pair for truth, found in zip(gold, answers, strict=True) for _, pair in _span_pairs(truth, found)]
    if not pairs:
        return None
    labels = sorted({label for pair in pairs for label in pair} - {NONE})
    truth, answer = zip(*pairs, strict=True)
    return confusion(truth, answer, labels=[*labels, NONE])


def _span_pairs(gold: Sequence[str], answer: Sequence[str]) -> list[tuple[tuple[int, int], tuple[str, str]]]:
    """For each span of the truth or the answer, by its borders: its type in both."""
    truth = {(begin, end): kind or "span" for begin, end, kind in spans(gold)}
    found = {(begin, end): kind or "span" for begin, end, kind in spans(answer)}
    return [(place, (truth.get(place, NONE), found.get(place, NONE))) for place in sorted({**truth, **found})]


# ---- the worst answers


def _tagging_mistakes(
    examples: Sequence[Tagged], answers: Sequence[Sequence[str]], path: str | Path, *, plain: bool
) -> Iterator[Mistake]:
    for example, tags in zip(examples, answers, strict=True):
        if plain:
            pairs = [((place, place + 1), pair) for place, pair in enumerate(zip(example.tags, tags, strict=True))]
        else:
            pairs = _span_pairs(example.tags, tags)
        wrong = [Wrong(" ".join(example.words[begin:end]), *pair) for (begin, end), pair in pairs if pair[0] != pair[1]]
        if wrong:
            where = _where(path, example.lines[0] if example.lines else None)
            yield Mistake(where, " ".join(example.words), wrong, len(wrong))


def _text_mistakes(examples: Sequence[Any], answers: Sequence[Any], path: str | Path) -> Iterator[Mistake]:
    for example, answer in zip(examples, answers, strict=True):
        text, where = _shown(example), _where(path, example.where)
        if isinstance(answer, Score):
            off = abs(answer.score - float(example.label))
            yield Mistake(where, text, [Wrong(text, example.label, f"{answer.score:.3f}")], off)
        elif answer.label != example.label:
            wrong = Wrong(text, example.label, answer.label)
            yield Mistake(where, text, [wrong], answer.probability, answer.probability)


def _shown(example: Any) -> str:
    """The text of an example, or both of a pair."""
    texts = [example.first, example.second] if isinstance(example, LabelledPair) else [example.text]
    return " | ".join(_plain(text) for text in texts)


def _plain(text: Sentence) -> str:
    return text if isinstance(text, str) else " ".join(text)


# ---- labels that a task does not know


def strange_labels(config: TaskConfig, labels: Sequence[str], examples: Sequence[Any], path: str | Path) -> list[Strange]:
    """The labels of examples that are none of `labels`, each with the line where it comes first."""
    if getattr(config, "goal", None) == "score":
        return []
    if isinstance(config, TaggingConfig):
        found = _tags(examples, path)
        if config.scheme != "plain":
            found = _types(list(found), path)
            labels = ["O", *(label[2:] for label in labels if label != "O")]
    else:
        found = ((example.label, _where(path, example.where)) for example in examples)
    known, firsts, times = set(labels), dict[str, str](), Counter[str]()
    for label, where in found:
        if label not in known:
            firsts.setdefault(label, where)
            times[label] += 1
    return [Strange(where, label, times[label]) for label, where in firsts.items()]


def _tags(examples: Sequence[Tagged], path: str | Path) -> Iterator[tuple[str, str]]:
    for example in examples:
        for place, tag in enumerate(example.tags):
            yield tag, _where(path, example.lines[place] if example.lines else None)


def _types(tags: Sequence[tuple[str, str]], path: str | Path) -> Iterator[tuple[str, str]]:
    """Types of spans; tags that are of no span at all cannot be scored."""
    for tag, where in tags:
        if tag != "O" and not are_span_tags([tag]):
            raise FormatError(where, f"has the tag {tag!r}, but the tagger learns spans (O, B-TYPE, I-TYPE): is it the column?")
        yield tag if tag == "O" else tag[2:], where


def _where(path: str | Path, line: int | None) -> str:
    return str(path) if line is None else f"{path}:{line}"
