"""Linear models over sparse features: logistic regression, and least squares for scores. Solved by L-BFGS, in seconds.

Three weightings. `tfidf` is what anyone would try first (scikit-learn's TfidfVectorizer and LogisticRegression): the baseline.
`nb` weights each feature by its log-count ratio in each class, as in Wang and Manning 2012 (NB-SVM), which does better with few
examples and in sentiment. `nb-idf` multiplies these by inverse document frequencies, for classes of so few examples that the
ratios of frequent words are chance. A model is convex, so it cannot collapse: networks add their scores to those of one
(`tasks.wide`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.tasks.sparse_features import SparseRows

Weighting = Literal["tfidf", "nb", "nb-idf"]
MAX_WEIGHTS = 8_000_000
"""Features that few rows have are dropped until a model has at most so many weights."""
_ITERATIONS = 50
_TOLERANCE = 1e-6  # of the loss of a row


@dataclass(frozen=True)
class LinearModel:
    """Scores rows: (features,) ids in order, (features, outputs) weights and (outputs,) biases."""

    ids: Tensor
    weights: Tensor
    bias: Tensor
    idf: np.ndarray | None = None
    """(features,): inverse document frequencies by which counts are multiplied."""

    def scores(self, rows: SparseRows) -> Tensor:
        """Return (rows, outputs); features that the model does not know are left out."""
        known, column = _lookup(rows.ids, self.ids.numpy())
        kept = _select(rows, known)
        values = torch.from_numpy(_unit_rows(kept, column[known], self.idf))
        return _times(torch.from_numpy(column[known]), values, torch.from_numpy(kept.starts), self.weights) + self.bias


def fit_linear_model(
    rows: SparseRows, targets: np.ndarray, outputs: int, *, weighting: Weighting = "nb", c: float = 1.0
) -> LinearModel:
    """Fit a model: `targets` are class numbers, or with one output numbers to predict. `c`: inverse of the L2 penalty."""
    ids, kept, columns = _compact(rows, outputs)
    idf = _idf(columns, len(ids), len(rows)) if weighting == "tfidf" else None
    use_ratios = weighting != "tfidf" and outputs > 1
    scale = _log_count_ratios(kept, columns, targets, len(ids), outputs) if use_ratios else np.ones((len(ids), 1), np.float32)
    if weighting == "nb-idf":
        scale *= _idf(columns, len(ids), len(rows))[:, None]
    problem = _Problem(columns, _unit_rows(kept, columns, idf), kept, torch.from_numpy(scale), targets, outputs)
    weights, bias = problem.solve(c)
    return LinearModel(torch.from_numpy(ids), weights * problem.scale, bias, idf)


def binary(rows: SparseRows) -> SparseRows:
    """Return rows whose repeated features count once."""
    return SparseRows(rows.starts, rows.ids, np.minimum(rows.counts, 1.0).astype(np.float32))


class _Problem:
    """The loss of a linear model and its gradient."""

    def __init__(
        self, columns: np.ndarray, values: np.ndarray, rows: SparseRows, scale: Tensor, targets: np.ndarray, outputs: int
    ) -> None:
        self.scale, self.outputs, self.count = scale, outputs, len(rows)
        self.targets = torch.from_numpy(targets if outputs > 1 else targets.astype(np.float32))
        self.columns, self.values = torch.from_numpy(columns), torch.from_numpy(values)
        self.starts = torch.from_numpy(rows.starts)
        order = np.argsort(columns, kind="stable")
        self.rows_by_column = torch.from_numpy(rows.rows[order])
        self.values_by_column = self.values[torch.from_numpy(order)]
        self.column_starts = torch.from_numpy(np.searchsorted(columns[order], np.arange(len(scale) + 1)))

    def solve(self, c: float) -> tuple[Tensor, Tensor]:
        weights = torch.zeros(len(self.scale), self.outputs, requires_grad=True)
        bias = self._initial_bias().requires_grad_()
        optimizer = torch.optim.LBFGS(
            [weights, bias],
            max_iter=_ITERATIONS,
            history_size=8,
            line_search_fn="strong_wolfe",
            tolerance_change=_TOLERANCE * self.count,
            tolerance_grad=0.0,
        )

        @torch.no_grad()
        def closure() -> Tensor:
            scores = _times(self.columns, self.values, self.starts, weights * self.scale) + bias
            loss, slope = self._loss(scores)
            back = _times(self.rows_by_column, self.values_by_column, self.column_starts, slope)
            weights.grad = back * self.scale + weights / c
            bias.grad = slope.sum(0)
            return loss + weights.square().sum() / (2 * c)

        optimizer.step(closure)
        return weights.detach(), bias.detach()

    def _initial_bias(self) -> Tensor:
        if self.outputs == 1:
            return self.targets.mean().reshape(1)
        counts = torch.bincount(self.targets, minlength=self.outputs).float()
        return torch.log((counts + 0.5) / (counts + 0.5).sum())

    def _loss(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The summed loss, and its derivative by the scores."""
        if self.outputs == 1:
            error = scores.squeeze(1) - self.targets
            return 0.5 * error.square().sum(), error.unsqueeze(1)
        slope = torch.softmax(scores, dim=1)
        slope[torch.arange(len(slope)), self.targets] -= 1
        return F.cross_entropy(scores, self.targets, reduction="sum"), slope


def _times(columns: Tensor, values: Tensor, starts: Tensor, table: Tensor) -> Tensor:
    """A sparse matrix times a table: for each row the sum of the table's rows, weighted."""
    if not len(columns):
        return table.new_zeros(len(starts) - 1, table.shape[1])
    return F.embedding_bag(columns, table, starts, mode="sum", per_sample_weights=values, include_last_offset=True)


def _compact(rows: SparseRows, outputs: int) -> tuple[np.ndarray, SparseRows, np.ndarray]:
    """The features to keep in order, the rows with these alone, and the column of each entry."""
    ids, counts = np.unique(rows.ids, return_counts=True)
    least = 2 if len(rows) >= 1000 else 1
    while least <= counts.max(initial=1) and np.count_nonzero(counts >= least) * outputs > MAX_WEIGHTS:
        least += 1
    ids = ids[counts >= least]
    known, column = _lookup(rows.ids, ids)
    return ids, _select(rows, known), column[known]


def _lookup(ids: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each id is known, and its position among the known ones, which are in order."""
    if not len(known):
        return np.zeros(len(ids), dtype=bool), np.zeros(len(ids), dtype=np.int64)
    position = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return known[position] == ids, position


def _select(rows: SparseRows, entries: np.ndarray) -> SparseRows:
    """The rows with some of their entries."""
    before = np.concatenate([[0], np.cumsum(entries)])
    return SparseRows(before[rows.starts], rows.ids[entries], rows.counts[entries])


def _unit_rows(rows: SparseRows, columns: np.ndarray, idf: np.ndarray | None) -> np.ndarray:
    """Counts, times inverse document frequencies if given, divided by the length of their row."""
    values = rows.counts if idf is None else rows.counts * idf[columns]
    row = rows.rows
    length = np.sqrt(np.bincount(row, values.astype(np.float64) ** 2, minlength=len(rows)))
    return (values / np.maximum(length, 1e-12)[row]).astype(np.float32)


def _idf(columns: np.ndarray, features: int, rows: int) -> np.ndarray:
    """Smoothed inverse document frequencies, as scikit-learn computes them."""
    return (np.log((1 + rows) / (1 + np.bincount(columns, minlength=features))) + 1).astype(np.float32)


def _log_count_ratios(rows: SparseRows, columns: np.ndarray, targets: np.ndarray, features: int, outputs: int) -> np.ndarray:
    """(features, outputs): how much more frequent a feature is in a class than in the others."""
    label = targets[rows.rows]
    ratios = np.empty((features, outputs), dtype=np.float32)
    for each in range(outputs):
        inside = 1.0 + np.bincount(columns[label == each], minlength=features)
        outside = 1.0 + np.bincount(columns[label != each], minlength=features)
        ratios[:, each] = np.log(inside / inside.sum()) - np.log(outside / outside.sum())
    return ratios
