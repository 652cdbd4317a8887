"""L2-regularized logistic regression for benchmarks: many folds and strengths at once, in NumPy.

The problems that differ only in their rows, labels and regularization are columns of one matrix product. In the eigenbasis of
the inputs, the curvature of the loss has a diagonal upper bound (Böhning 1992), which makes accelerated gradient descent
converge in a few dozen steps. Several classes are one against the rest, as in liblinear, which SentEval uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

STRENGTHS = tuple(float(each) for each in 10.0 ** np.arange(-4.5, -1.4, 0.5))
"""Weights of the penalty beside the mean loss, times the mean variance of the inputs; C = 1 / (weight * examples)."""
_STEPS, _TOLERANCE = 150, 1e-5
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Choice:
    """A regularization that was chosen on training data, and what it predicts."""

    strength: float
    predicted: NDArray[np.int64]


def choose_and_predict(
    train: Floats,
    labels: NDArray[np.int64],
    test: Floats,
    *,
    dev: tuple[Floats, NDArray[np.int64]] | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Choice:
    """Choose the strength on dev data, or by cross-validation on the training data, train on all of these, classify test data.

    Inputs are standardized by the training data.
    """
    mean, std = train.mean(0), train.std(0)
    std[std < 1e-8] = 1
    inputs, others = (train - mean) / std, (test - mean) / std
    classes = int(labels.max()) + 1
    if dev is None:
        fold = np.random.default_rng(seed).permutation(len(labels)) % folds
        held = [fold == each for each in range(folds)]
        scored, gold, kept = inputs, labels, [~each for each in held]
    else:
        held, kept = [np.ones(len(dev[1]), bool)], [np.ones(len(labels), bool)]
        scored, gold = (dev[0] - mean) / std, dev[1]
    rotated, basis = _rotate(inputs)
    tried = [(rows, strength) for strength in STRENGTHS for rows in kept]
    weights = _solve(rotated, labels, classes, tried)
    found = _classify(scored @ basis, weights, classes)
    right = np.array([(found[rows, column] == gold[rows]).sum() for column, rows in enumerate(held * len(STRENGTHS))])
    best = STRENGTHS[int(right.reshape(len(STRENGTHS), -1).sum(1).argmax())]
    final = _solve(rotated, labels, classes, [(np.ones(len(labels), bool), best)])
    return Choice(best, _classify(others @ basis, final, classes)[:, 0])


def _rotate(inputs: Floats) -> tuple[Floats, Floats]:
    """Inputs (examples, dim) in the basis of their covariance, and that basis (dim, rank)."""
    values, basis = np.linalg.eigh(inputs.T @ inputs)
    basis = basis[:, values > values[-1] * 1e-6]
    return inputs @ basis, basis


def _solve(
    inputs: Floats, labels: NDArray[np.int64], classes: int, problems: list[tuple[NDArray[np.bool_], float]]
) -> tuple[Floats, Floats]:
    """Weights (dim, problems * outputs) and biases of problems: rows to train on, and the strength of the penalty."""
    outputs = [1] if classes == 2 else range(classes)
    signs = np.tile(np.stack([np.where(labels == each, 1, -1) for each in outputs], 1), (1, len(problems))).astype(np.float32)
    rows = np.repeat(np.stack([rows / rows.sum() for rows, _ in problems], 1), len(outputs), 1).astype(np.float32)
    penalty = np.repeat([strength * inputs.shape[1] for _, strength in problems], len(outputs)).astype(np.float32)
    bound = ((inputs**2).mean(0)[:, None] * 1.2 / 4 + penalty).astype(np.float32)
    weights = ahead = np.zeros((inputs.shape[1], signs.shape[1]), np.float32)
    biases = bias_ahead = np.zeros(signs.shape[1], np.float32)
    momentum = 1.0
    for _ in range(_STEPS):
        margins = signs * (inputs @ ahead + bias_ahead)
        slopes = -signs * rows / (1 + np.exp(np.clip(margins, -30, 30)))
        gradient = inputs.T @ slopes + penalty * ahead
        new, new_bias = ahead - gradient / bound, bias_ahead - 4 / 1.2 * slopes.sum(0)
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        factor = (momentum - 1) / following
        ahead, bias_ahead = new + factor * (new - weights), new_bias + factor * (new_bias - biases)
        weights, biases, momentum = new, new_bias, following
        if np.abs(gradient / np.sqrt(bound)).max() < _TOLERANCE:
            break
    return weights, biases


def _classify(inputs: Floats, weights: tuple[Floats, Floats], classes: int) -> NDArray[np.int64]:
    """The classes (examples, problems) of rotated inputs."""
    scores = inputs @ weights[0] + weights[1]
    if classes == 2:
        return (scores > 0).astype(np.int64)
    return scores.reshape(len(scores), -1, classes).argmax(-1)
