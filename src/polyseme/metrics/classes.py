"""The confusion matrix of a classifier, and the scores that follow from it.

Precision, recall and F1 of each class, their mean over classes (macro), and the Matthews correlation coefficient for any number
of classes (Gorodkin 2004). A score with a zero denominator is 0, as in scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polyseme.base.display import columns
from polyseme.base.errors import UsageError
from polyseme.metrics.spans import PRFScore

OTHERS = "(others)"
"""The name of several small classes together."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix."""

    labels: tuple[str, ...]
    counts: NDArray[np.int64]
    """(classes, classes): gold labels in rows, predictions in columns."""
    others_correct: int | None = None
    """If the last class is several together: how many predictions of them are correct, not only one of the others."""
    no_span: str | None = None
    """Of types of spans: the label of places without one. It is no class, and has no precision and recall."""

    @property
    def correct(self) -> list[int]:
        """The correct predictions of each class."""
        correct: list[int] = np.diag(self.counts).tolist()
        return correct if self.others_correct is None else [*correct[:-1], self.others_correct]

    @property
    def accuracy(self) -> float:
        """Correct predictions / all."""
        return sum(self.correct) / int(self.counts.sum())

    @property
    def classes(self) -> dict[str, PRFScore]:
        """The scores of each class."""
        gold, predicted = self.counts.sum(1).tolist(), self.counts.sum(0).tolist()
        return {label: PRFScore(*each) for label, *each in zip(self.labels, gold, predicted, self.correct, strict=True)}

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the classes that occur in gold labels or predictions."""
        scores = [scores.f1 for scores in self.classes.values() if scores.gold or scores.predicted]
        return math.fsum(scores) / len(scores)

    @property
    def matthews(self) -> float:
        """The Matthews correlation coefficient, from -1 to 1; 0 if gold or predictions have only one class."""
        gold, predicted = self.counts.sum(1).tolist(), self.counts.sum(0).tolist()
        correct, total = sum(self.correct), int(self.counts.sum())
        covariance = correct * total - sum(a * b for a, b in zip(gold, predicted, strict=True))
        variances = (total**2 - sum(a * a for a in gold)) * (total**2 - sum(b * b for b in predicted))
        return covariance / math.sqrt(variances) if variances else 0.0

    def largest(self, most: int) -> Confusion:
        """Return the matrix of the classes with most gold labels and predictions; all others are one class, in one row.

        >>> table = confusion(["a", "a", "b", "c"], ["a", "a", "b", "b"]).largest(1)
        >>> table.labels, table.counts.tolist(), table.accuracy   # b for c is an error, though it is in the last cell
        (('a', '(others)'), [[2, 0], [0, 2]], 0.75)
        """
        if most >= len(self.labels):
            return self
        sizes = self.counts.sum(1) + self.counts.sum(0)
        kept = sorted(np.argsort(-sizes, kind="stable")[:most].tolist())
        row = {number: new for new, number in enumerate(kept)}
        rows = np.array([row.get(number, most) for number in range(len(self.labels))])
        counts = np.zeros((most + 1, most + 1), dtype=np.int64)
        np.add.at(counts, (rows[:, None], rows[None, :]), self.counts)
        correct = sum(self.correct) - sum(self.correct[number] for number in kept)
        return Confusion((*(self.labels[number] for number in kept), OTHERS), counts, correct, self.no_span)

    def without_empty_no_span(self) -> Confusion:
        """Return the matrix without the label of places without a span, where no span was missed and none is spurious."""
        if self.no_span not in self.labels:
            return self
        at = self.labels.index(self.no_span)
        if self.counts[at].any() or self.counts[:, at].any():
            return self
        counts = np.delete(np.delete(self.counts, at, 0), at, 1)
        return Confusion((*self.labels[:at], *self.labels[at + 1 :]), counts, self.others_correct, self.no_span)

    def __str__(self) -> str:
        classes = self.classes
        rows = [["gold \\ predicted", *self.labels, "all", "recall"]]
        for label, counts in zip(self.labels, self.counts.tolist(), strict=True):
            recall = f"{classes[label].recall:.3f}" if classes[label].gold and label != self.no_span else "-"
            rows.append([label, *map(str, counts), str(classes[label].gold), recall])
        rows.append(["all", *(str(each.predicted) for each in classes.values()), str(int(self.counts.sum())), ""])
        precisions = [
            f"{each.precision:.3f}" if each.predicted and label != self.no_span else "-" for label, each in classes.items()
        ]
        rows.append(["precision", *precisions, "", f"{self.accuracy:.3f}" if self.no_span is None else ""])
        return columns(rows, indent=0, right=range(1, len(rows[0])))


def confusion(gold: Sequence[str], predicted: Sequence[str], *, labels: Sequence[str] | None = None) -> Confusion:
    """Return the confusion matrix; `labels` gives the order of the classes, which are sorted by default.

    >>> table = confusion(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> table.counts.tolist(), round(table.macro_f1, 4), round(table.matthews, 4)
    ([[1, 1], [0, 2]], 0.7333, 0.5774)
    """
    if len(gold) != len(predicted) or not len(gold):
        raise UsageError(f"{len(predicted)} predictions for {len(gold)} gold labels; a confusion matrix needs one for each")
    found = {*gold, *predicted}
    order = tuple(sorted(found) if labels is None else dict.fromkeys(labels))
    if missing := sorted(found.difference(order)):
        raise UsageError(f"labels are {', '.join(order)}; gold labels or predictions also have {', '.join(missing)}")
    number = {label: i for i, label in enumerate(order)}
    cells = [number[a] * len(order) + number[b] for a, b in zip(gold, predicted, strict=True)]
    counts = np.bincount(cells, minlength=len(order) ** 2).astype(np.int64)
    return Confusion(order, counts.reshape(len(order), len(order)))
