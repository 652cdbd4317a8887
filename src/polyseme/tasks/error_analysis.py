"""Where a trained task goes wrong on a file: the confusion matrix, the worst errors, and labels that it does not know.

Each task says itself what counts as an error. Spans are compared by their types: a span with the right begin and end is right
or has the wrong type, one that was not found is a miss (prediction "none"), one that is not in the data is spurious (gold
"none"). So a wrong boundary counts twice, as it does in F1.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from polyseme.base.display import columns, count, html_table, short
from polyseme.base.errors import FormatError
from polyseme.metrics.classes import OTHERS, Confusion, confusion
from polyseme.metrics.spans import PRFScore, are_span_tags
from polyseme.tasks.predictions import LayerWeights

NONE = "none"
MIN_SCORED_EXAMPLES = 100  # examples, below which a score is no more than a hint
_MEANINGLESS = 10  # examples, below which it is not even that
WIDTH = 80  # terminal columns of a report
PAIRS = 20  # confused labels that are shown where not all classes fit
_CLASSES = 16  # of a matrix, at most
_LABEL = 14  # columns of a label in a matrix
_CLASS = 40  # and in a list
_UNKNOWN = 3  # unknown labels that are named
_EQUAL = 5  # places of equal errors
_NUMBER = re.compile(r"(:| row )(\d+)$")  # of the line or row, in a place
Label = tuple[str, str]
"""A label, and the file and line where it is."""
S = TypeVar("S", bound=tuple[Any, ...])


class Labelled(Protocol):
    """An example with one label."""

    @property
    def label(self) -> str | None:
        """None: not known."""

    @property
    def where(self) -> int | None:
        """The line of its file, if known."""


@dataclass(frozen=True)
class PredictionError:
    """A wrong prediction; for taggers, of a word or a span."""

    text: str
    gold: str
    predicted: str


@dataclass(frozen=True)
class ExampleError:
    """An example with a wrong prediction."""

    where: str
    """File and line."""
    text: str
    errors: list[PredictionError]
    weight: float
    """How bad it is: wrong words or spans, the probability of a wrong label, the distance of a score, or 1 - F1."""
    probability: float | None = None
    """Of the prediction, where the network chose among several."""
    equal: tuple[str, ...] = ()
    """Where equal examples with equal errors are."""

    @classmethod
    def single(
        cls, where: str, text: str, gold: str, predicted: str, weight: float, *, probability: float | None = None
    ) -> Self:
        """Of an example that has one prediction."""
        return cls(where, text, [PredictionError(text, gold, predicted)], weight, probability)

    def __str__(self) -> str:
        sure = "" if self.probability is None else f" ({self.probability:.3f})"
        rows = [(each.text, f"gold {short(each.gold)}, predicted {short(each.predicted)}{sure}") for each in self.errors]
        own = [short(f"  {what}", WIDTH) for text, what in rows if text == self.text]
        lines = [self.where, short(f"  {self.text}", WIDTH), *own, *([f"  and {self.equal_ones}"] if self.equal else [])]
        parts = columns([(short(text, 30), short(what, WIDTH - 34)) for text, what in rows if text != self.text])
        return "\n".join([*lines, *([parts] if parts else [])])

    @property
    def equal_ones(self) -> str:
        """How many equal ones there are, and their lines.

        >>> ExampleError("f:3", "a", [], 1).equal_ones, ExampleError("f:3", "a", [], 1, equal=("f:5", "f:8")).equal_ones
        ('', '2 equal ones: lines 5, 8')
        """
        ones = count(len(self.equal), "equal one") if self.equal else ""
        numbers = [found for place in self.equal if (found := _NUMBER.search(place))]
        if not numbers:
            return ones
        noun = ("line" if numbers[0][1] == ":" else "row") + ("s" if len(numbers) > 1 else "")
        more = f" and {len(numbers) - _EQUAL:,} more" if len(numbers) > _EQUAL else ""
        return f"{ones}: {noun} {', '.join(found[2] for found in numbers[:_EQUAL])}{more}"


@dataclass(frozen=True)
class UnknownLabel:
    """A label that a task does not know."""

    where: str
    """File and line of its first occurrence."""
    label: str
    times: int

    def __str__(self) -> str:
        return f"{self.where}: has the label {self.label!r}" + (f" ({self.times:,} times)" if self.times > 1 else "")


@dataclass(frozen=True)
class ErrorReport:
    """How well a task does on a file."""

    path: str
    scores: dict[str, float]
    main: str
    """The main metric."""
    examples: int
    confusion: Confusion | None
    """Of labels, plain tags or types of spans; None where predictions are not classes, or nothing could be confused."""
    worst: list[ExampleError]
    """Different ones, the worst first."""
    unknown_labels: list[UnknownLabel]
    layer_weights: LayerWeights = field(default_factory=lambda: LayerWeights({}))
    """Of the task."""
    leaked: int = 0
    """How many examples have texts of the training data; 0 if few have, or where that is not known."""
    wrong: int = 0
    """How many examples have errors; `worst` may have fewer."""

    def of_wrong(self, errors: Iterable[ExampleError]) -> str:
        """Return how many of the wrong examples are shown, to stand behind a title; nothing if all are."""
        shown = sum(1 + len(each.equal) for each in errors)
        return f" ({shown:,} of {self.wrong:,})" if shown < self.wrong else ""

    def confused(self, most: int) -> list[tuple[str, str, int]]:
        """Return the labels that were confused most often: gold, predicted, times."""
        if self.confusion is None:
            return []
        labels, counts = self.confusion.labels, self.confusion.counts
        cells = [(a, b) for a in range(len(labels)) for b in range(len(labels)) if a != b and counts[a, b]]
        cells.sort(key=lambda cell: -counts[cell])
        return [(labels[a], labels[b], int(counts[a, b])) for a, b in cells[:most]]

    def rows(self) -> list[dict[str, Any]]:
        """Return the wrong predictions of `worst` as rows of a table: `pandas.DataFrame(report.rows())`."""
        return [
            {"where": each.where, "text": wrong.text, "gold": wrong.gold, "predicted": wrong.predicted}
            | {"probability": each.probability, "example": each.text}
            for each in self._examples()
            for wrong in each.errors
        ]

    def _examples(self) -> Iterator[ExampleError]:
        """Those of `worst`, and equal ones at their own places."""
        return (replace(each, where=where, equal=()) for each in self.worst for where in (each.where, *each.equal))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values: what `polyseme evaluate --json` prints."""
        table = self.confusion
        return {
            "scores": self.scores,
            "main": self.main,
            "examples": self.examples,
            "classes": table
            and {label: _class_scores(each) for label, each in table.classes.items() if label != table.no_span},
            "confusion": table and {"labels": list(table.labels), "counts": table.counts.tolist()},
            "errors": [
                {
                    "where": error.where,
                    "text": error.text,
                    "probability": error.probability,
                    "wrong": [{"text": each.text, "gold": each.gold, "predicted": each.predicted} for each in error.errors],
                }
                for error in self._examples()
            ],
            "unknown_labels": [{"where": each.where, "label": each.label, "times": each.times} for each in self.unknown_labels],
            "layer_weights": self.layer_weights.weights,
        }

    def __str__(self) -> str:
        blocks = [f"{self.path}: {count(self.examples, 'example')}\n{score_table({'': self.scores})}"]
        if few := few_examples(self.main, self.scores.get(self.main, math.nan), self.examples):
            blocks[0] += f"\n{few}"
        if self.confusion is not None:
            blocks += [class_table(self.confusion), self._confusion_text()]
        if self.worst:
            blocks.append(f"worst errors{self.of_wrong(self.worst)}")
        blocks += map(str, self.worst)
        return "\n\n".join([*blocks, *([f"layer weights\n{self.layer_weights}"] if self.layer_weights.weights else [])])

    def _confusion_text(self) -> str:
        assert self.confusion is not None
        table = confusion_text(self.confusion)
        if OTHERS not in table:
            return table
        rows = [(f"{short(gold, 30)} taken for {short(said, 30)}", f"{times:,}") for gold, said, times in self.confused(PAIRS)]
        return f"{table}\n\nmost often confused\n{columns(rows)}" if rows else "nothing was confused"

    def _repr_html_(self) -> str:
        title = f"{self.path}: {count(self.examples, 'example')}"
        tables = [html_table(list(self.scores), [[f"{value:.4f}" for value in self.scores.values()]], caption=title)]
        if pairs := self.confused(PAIRS):
            tables.append(html_table(["gold", "predicted", "times"], pairs, caption="most often confused"))
        names = ["where", "text", "gold", "predicted"]
        if rows := [[row[name] for name in names] for row in self.rows()]:
            tables.append(html_table(names, rows, caption="worst errors"))
        return "".join([*tables, self.layer_weights._repr_html_()])


def few_examples(main: str, score: float, examples: int, what: str = "example") -> str:
    """Return a sentence that says how much chance moves a score, where few examples were scored; else nothing.

    Of fewer than 10, no score means anything.

    >>> few_examples("accuracy", 0.5, 2)
    'only 2 examples: too few for a score to mean anything'
    >>> few_examples("accuracy", 0.8, 25), few_examples("f1", 0.8, 100)
    ('only 25 examples: chance alone moves the score about 16 points up or down', '')
    >>> few_examples("f1", 0.8, 12, "dev example")
    'only 12 dev examples: chance alone moves the score by many points'
    """
    if not 0 < examples < MIN_SCORED_EXAMPLES or math.isnan(score):
        return ""
    if examples < _MEANINGLESS:
        return f"only {count(examples, what)}: too few for a score to mean anything"
    share = min(max(score, 0.1), 0.9)  # no score is certain
    points = f"{196 * math.sqrt(share * (1 - share) / examples):.0f} points"
    size = f"about {points} up or down" if main == "accuracy" else "by many points"
    return f"only {count(examples, what)}: chance alone moves the score {size}"


def distinct_errors(errors: Iterable[ExampleError]) -> list[ExampleError]:
    """Return the first of errors that are equal but for their place, with the places of the others."""
    found: dict[tuple[Any, ...], list[ExampleError]] = {}
    for error in errors:
        found.setdefault((error.text, *error.errors), []).append(error)
    return [replace(first, equal=tuple(each.where for each in others)) for first, *others in found.values()]


def class_table(table: Confusion) -> str:
    """Precision, recall and F1 of each class, with the number of its gold labels.

    >>> print(class_table(confusion(["a", "a", "b"], ["a", "b", "b"])))
       precision  recall     f1  gold
    a      1.000   0.500  0.667     2
    b      0.500   1.000  0.667     1
    """
    rows = [["", "precision", "recall", "f1", "gold"]]
    for label, scores in table.largest(PAIRS).classes.items():
        if label not in (table.no_span, OTHERS):
            values = (f"{value:.3f}" for value in (scores.precision, scores.recall, scores.f1))
            rows.append([short(label, _CLASS), *values, f"{scores.gold:,}"])
    return columns(rows, indent=0, right=range(1, len(rows[0])))


def confusion_text(table: Confusion, width: int = WIDTH) -> str:
    """A confusion matrix of at most so many columns: of many classes the largest, and all others as one."""
    from rich.cells import cell_len

    table = table.without_empty_no_span()
    for most in range(min(len(table.labels), _CLASSES), 0, -1):
        part = table.largest(most)
        text = str(replace(part, labels=tuple(short(label, _LABEL) for label in part.labels)))
        if max(map(cell_len, text.splitlines())) <= width:
            break
    return text


def html_confusion(table: Confusion, *, caption: str = "") -> str:
    """A confusion matrix for a notebook; of many classes the largest, and all others as one."""
    part = table.without_empty_no_span().largest(_CLASSES)
    rows = [[label, *counts] for label, counts in zip(part.labels, part.counts.tolist(), strict=True)]
    return html_table(["gold \\ predicted", *part.labels], rows, caption=caption)


def score_table(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Scores of several data sets in columns.

    >>> print(score_table({"dev": {"f1": 0.5}}))
             f1
    dev  0.5000
    """
    metrics = list(dict.fromkeys(metric for row in rows.values() for metric in row))
    widths = {metric: max(len(metric), 6) + 2 for metric in metrics}
    first = max((len(name) for name in rows), default=0)
    lines = [" " * first + "".join(f"{metric:>{widths[metric]}}" for metric in metrics)]
    for name, row in rows.items():
        cells = (
            f"{f'{row[metric]:.4f}' if metric in row and row[metric] == row[metric] else '':>{widths[metric]}}"
            for metric in metrics
        )
        lines.append((f"{name:{first}}" + "".join(cells)).rstrip())
    return "\n".join(lines)


def location(path: str | Path, line: int | None) -> str:
    """A file and its line, where that is known.

    >>> location("dev.tsv", 3), location("dev.tsv", None)
    ('dev.tsv:3', 'dev.tsv')
    """
    return str(path) if line is None else f"{path}:{line}"


def _class_scores(scores: PRFScore) -> dict[str, float]:
    return {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1, "gold": scores.gold}


# ---- labels


def find_unknown_labels(labels: Iterable[Label], known: Iterable[str]) -> list[UnknownLabel]:
    """Return the labels that are not known, each with the line of its first occurrence.

    >>> find_unknown_labels([("x", "f:1"), ("y", "f:2"), ("y", "f:3")], ["x"])
    [UnknownLabel(where='f:2', label='y', times=2)]
    """
    expected, firsts, times = set(known), dict[str, str](), Counter[str]()
    for label, where in labels:
        if label not in expected:
            firsts.setdefault(label, where)
            times[label] += 1
    return [UnknownLabel(where, label, times[label]) for label, where in firsts.items()]


def unknown_labels_message(unknown: Sequence[UnknownLabel], path: str | Path) -> str:
    """Say on one line which labels of a file no training example has.

    >>> unknown_labels_message([UnknownLabel("f:2", "y", 2)], "f")
    "f:2: has the label 'y' (2 times), which the training data lacks: it counts as wrong"
    >>> unknown_labels_message([UnknownLabel(f"f:{line}", f"id{line}", line) for line in (1, 2, 3, 4)], "f")
    "f: has 4 labels that the training data lacks, which count as wrong: 'id1' (line 1), 'id2' (line 2), 'id3' (line 3) ..."
    """
    if len(unknown) == 1:
        return f"{unknown[0]}, which the training data lacks: it counts as wrong"
    lines = {each.label: each.where.removeprefix(f"{path}:") for each in unknown[:_UNKNOWN]}
    shown = ", ".join(f"{label!r}{f' (line {line})' if line.isdecimal() else ''}" for label, line in lines.items())
    more = " ..." if len(unknown) > _UNKNOWN else ""
    return f"{path}: has {len(unknown):,} labels that the training data lacks, which count as wrong: {shown}{more}"


def unknown_example_labels(examples: Iterable[Labelled], known: Iterable[str], path: str | Path) -> list[UnknownLabel]:
    """Return the labels of examples that are not known."""
    return find_unknown_labels(((str(example.label), location(path, example.where)) for example in examples), known)


def tag_locations(tags: Sequence[str], lines: Sequence[int], path: str | Path) -> Iterator[Label]:
    """The tags of a sentence with the lines of its words, where these are known."""
    return ((tag, location(path, lines[position] if lines else None)) for position, tag in enumerate(tags))


def unknown_span_types(tags: Iterable[Label], known: Iterable[str]) -> list[UnknownLabel]:
    """Return the types of spans that no known tag has; a tag that marks no span is an error.

    >>> unknown_span_types([("O", "f:1"), ("B-Z", "f:2"), ("I-Z", "f:3")], ["O", "B-X", "E-X"])
    [UnknownLabel(where='f:2', label='Z', times=2)]
    """
    return find_unknown_labels(_types(tags), ["O", *(tag[2:] for tag in known if tag != "O")])


def _types(tags: Iterable[Label]) -> Iterator[Label]:
    for tag, where in tags:
        if tag != "O" and not are_span_tags([tag]):
            raise FormatError(
                where, f"has the tag {tag!r}, but the tagger knows span tags (O, B-TYPE, I-TYPE): check the column"
            )
        yield tag if tag == "O" else tag[2:], where


# ---- spans


def align_spans(gold: Mapping[S, str], predicted: Mapping[S, str]) -> dict[S, tuple[str, str]]:
    """Return the gold and the predicted type of each span, in order.

    >>> align_spans({(0, 2): "PER"}, {(0, 1): "PER"})
    {(0, 1): ('none', 'PER'), (0, 2): ('PER', 'none')}
    """
    return {span: (gold.get(span, NONE), predicted.get(span, NONE)) for span in sorted({**gold, **predicted})}


def span_confusion(pairs: Sequence[tuple[str, str]]) -> Confusion | None:
    """The confusion matrix of pairs of gold and predicted types; None without spans."""
    if not pairs:
        return None
    labels = sorted({label for pair in pairs for label in pair} - {NONE})
    gold, predicted = zip(*pairs, strict=True)
    return replace(confusion(gold, predicted, labels=[*labels, NONE]), no_span=NONE)
