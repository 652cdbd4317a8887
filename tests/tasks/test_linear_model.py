"""Linear models of sparse features: the same as dense references, also for rows and features that they do not know."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.tasks.linear_model import binary, fit_linear_model
from polyseme.tasks.sparse_features import SparseRows

COUNTS = np.array([[2, 1, 0, 0], [1, 0, 1, 0], [0, 3, 0, 1], [0, 0, 1, 2], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=np.float64)
LABELS = np.array([0, 0, 1, 2, 1, 2])
IDS = np.array([7, 30, 31, 900])
C = 2.0


def sparse(counts: np.ndarray, ids: np.ndarray = IDS) -> SparseRows:
    rows, columns = np.nonzero(counts)
    starts = np.searchsorted(rows, np.arange(len(counts) + 1))
    return SparseRows(starts, ids[columns], counts[rows, columns].astype(np.float32))


def tfidf(counts: np.ndarray, of: np.ndarray = COUNTS) -> np.ndarray:
    """As in the documentation of scikit-learn: smoothed, and rows of length 1."""
    values = counts * (np.log((1 + len(of)) / (1 + (of > 0).sum(0))) + 1)
    return values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


def newton(inputs: np.ndarray, labels: np.ndarray, c: float) -> np.ndarray:
    """Logistic regression with an L2 penalty on all but the biases, which are the last row, by Newton's method."""
    inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    (count, size), outputs = inputs.shape, int(labels.max()) + 1
    penalty = np.diag([*[1 / c] * (size - 1), 0.0])
    weights, gold = np.zeros((size, outputs)), np.eye(outputs)[labels]
    for _ in range(50):
        shares = np.exp(inputs @ weights)
        shares /= shares.sum(1, keepdims=True)
        gradient = inputs.T @ (shares - gold) + penalty @ weights
        curvature = np.zeros((size, outputs, size, outputs))
        for row in range(count):
            spread = np.diag(shares[row]) - np.outer(shares[row], shares[row])
            curvature += np.einsum("i,j,kl->ikjl", inputs[row], inputs[row], spread)
        curvature += np.einsum("ij,kl->ikjl", penalty, np.eye(outputs))
        step = np.linalg.lstsq(curvature.reshape(size * outputs, -1), gradient.reshape(-1), rcond=None)[0]
        weights -= step.reshape(size, outputs)
    return weights


def test_logistic_regression_is_that_of_a_dense_reference() -> None:
    model = fit_linear_model(sparse(COUNTS), LABELS, 3, weighting="tfidf", c=C)
    reference = newton(tfidf(COUNTS), LABELS, C)
    found, expected = model.scores(sparse(COUNTS)).numpy(), np.hstack([tfidf(COUNTS), np.ones((6, 1))]) @ reference
    # biases have no penalty, so that scores may differ by a number for each row
    np.testing.assert_allclose(found - found.mean(1, keepdims=True), expected - expected.mean(1, keepdims=True), atol=0.01)


def test_least_squares_is_that_of_a_dense_reference() -> None:
    targets = np.array([0.0, 0.2, 1.0, 0.7, 0.4, 0.5])
    model = fit_linear_model(sparse(COUNTS), targets, 1, c=C)
    inputs = np.hstack([COUNTS / np.maximum(np.linalg.norm(COUNTS, axis=1, keepdims=True), 1e-12), np.ones((6, 1))])
    weights = np.linalg.solve(inputs.T @ inputs + np.diag([*[1 / C] * 4, 0.0]), inputs.T @ targets)
    np.testing.assert_allclose(model.scores(sparse(COUNTS)).numpy()[:, 0], inputs @ weights, atol=0.005)


def test_weights_of_counts_are_those_of_scikit_learn() -> None:
    model = fit_linear_model(sparse(COUNTS), LABELS, 3, weighting="tfidf")
    new = np.array([[1.0, 2.0, 0.0, 4.0]])
    expected = tfidf(new) @ model.weights.numpy() + model.bias.numpy()
    np.testing.assert_allclose(model.scores(sparse(new)).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("weighting", ["tfidf", "nb"])
def test_unknown_features_and_empty_rows(weighting: str) -> None:
    model = fit_linear_model(sparse(COUNTS), LABELS, 3, weighting=weighting)  # type: ignore[arg-type]
    known = model.scores(sparse(COUNTS[:2]))
    more = np.hstack([COUNTS[:2], np.ones((2, 2))])
    np.testing.assert_allclose(model.scores(sparse(more, np.array([*IDS, 1_000, 5_000]))).numpy(), known.numpy(), atol=1e-6)
    for rows in (sparse(np.zeros((2, 4))), sparse(np.ones((2, 1)), np.array([5]))):
        np.testing.assert_allclose(model.scores(rows).numpy(), np.tile(model.bias.numpy(), (2, 1)), atol=1e-6)
    assert model.scores(sparse(np.zeros((0, 4)))).shape == (0, 3)
    nothing = fit_linear_model(sparse(np.zeros((6, 4))), LABELS, 3, weighting=weighting)  # type: ignore[arg-type]
    assert np.isfinite(nothing.scores(sparse(COUNTS)).numpy()).all()


def test_features_of_one_class_speak_for_it() -> None:
    model = fit_linear_model(binary(sparse(COUNTS)), LABELS, 3)
    alone = model.scores(sparse(np.array([[1.0, 0, 0, 0]])))[0]
    assert alone.argmax() == 0 and alone[0] > alone[2]
    assert binary(sparse(COUNTS)).counts.max() == 1
