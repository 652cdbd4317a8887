"""The wide part of a network: a linear model of n-grams, whose scores are added to the network's ("wide and deep").

N-grams tell topics and sentiment from few examples, where a network would need many; the network adds what depends on order
and context, and knows words that the training data lacks. The linear model is fitted first. In training the network sees
scores from models that were fitted without the text (cross-fitting, in five parts): scores of the fitted texts would be right
nearly always, and leave the network nothing to learn.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.nn.to_device import to_device
from polyseme.tasks.containment import containing_texts
from polyseme.tasks.linear_model import LinearModel, Weighting, binary, fit_linear_model
from polyseme.tasks.sparse_features import FeatureHasher, SparseRows, Text, max_ngram

FOLDS = 5
PENALTIES = (1.0, 4.0, 16.0)
"""Inverse L2 penalties to choose from."""
FEW_EXAMPLES = 30
"""With fewer for a class, inverse document frequencies weight the features too: of TREC's 47 fine classes with 3 questions each
40.8 % are right on others and not 34.9, with 20 each 62.9 and not 60.3; with more there is no gain (SST-5: 39.1, 41.9)."""
Texts = tuple[Text, ...]
"""The texts of an example: one, or two."""


@dataclass(frozen=True)
class WideFit:
    """A linear model of the training data, and scores of its examples by models that were fitted without them."""

    model: LinearModel
    longest: int
    cross_fitted: np.ndarray
    """(examples, outputs)."""


class WidePart(nn.Module):
    """Scores (examples, outputs) of texts by a linear model, times a learned scale."""

    ids: Tensor
    weights: Tensor
    bias: Tensor
    longest: Tensor

    def __init__(self, features: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        self.register_buffer("ids", torch.zeros(features, dtype=torch.int64))
        self.register_buffer("weights", torch.zeros(features, outputs))
        self.register_buffer("bias", torch.zeros(outputs))
        self.register_buffer("longest", torch.tensor(2))
        self.scale = nn.Parameter(torch.ones(()))
        self._known: dict[Hashable, np.ndarray] = {}  # scores of training examples
        self._copy: _CpuCopy | None = None

    def load_fit(self, fit: WideFit, examples: Sequence[Texts]) -> None:
        """Take the weights of a fitted model, and the cross-fitted scores of the training data."""
        self.ids.copy_(fit.model.ids)
        self.weights.copy_(fit.model.weights)
        self.bias.copy_(fit.model.bias)
        self.longest.fill_(fit.longest)
        self._known = {example_key(texts): row for texts, row in zip(examples, fit.cross_fitted, strict=True)}

    def cross_fitted(self, examples: Sequence[Texts]) -> Tensor:
        """Return the scores of training examples, unscaled, as cross-fitting gave them."""
        rows = [self._known.get(example_key(texts)) for texts in examples]
        if missing := [number for number, row in enumerate(rows) if row is None]:
            scores = self._cpu_scores([examples[number] for number in missing]).numpy()
            for number, row in zip(missing, scores, strict=True):
                rows[number] = row
        return to_device(torch.from_numpy(np.stack(rows)), self.scale.device)  # type: ignore[arg-type]

    def scores(self, examples: Sequence[Texts]) -> Tensor:
        """Return the scores of examples, unscaled."""
        return to_device(self._cpu_scores(examples), self.scale.device)

    @torch.no_grad()
    def _cpu_scores(self, examples: Sequence[Texts]) -> Tensor:
        """The scores on the CPU, where the features are, whatever the device of the network."""
        if self._copy is None or not self._copy.is_of(self):
            self._copy = _CpuCopy.of(self)
        return self._copy.model.scores(hash_examples(self._copy.hasher, examples))

    def forward(self, scores: Tensor) -> Tensor:
        if self.training and self.dropout:  # whole examples, and no larger scores in exchange
            scores = scores * (torch.rand_like(scores[:, :1]) >= self.dropout)
        return self.scale * scores


@dataclass(frozen=True)
class _CpuCopy:
    """The linear model of a wide part on the CPU, and of which tensors it is a copy."""

    model: LinearModel
    hasher: FeatureHasher
    source: tuple[Tensor, ...]
    versions: tuple[int, ...]

    @classmethod
    def of(cls, wide: WidePart) -> _CpuCopy:
        model = LinearModel(wide.ids.cpu(), wide.weights.float().cpu(), wide.bias.float().cpu())
        return cls(model, FeatureHasher(int(wide.longest)), _tensors(wide), _versions(wide))

    def is_of(self, wide: WidePart) -> bool:
        same = all(now is then for now, then in zip(_tensors(wide), self.source, strict=True))
        return same and _versions(wide) == self.versions


def _tensors(wide: WidePart) -> tuple[Tensor, ...]:
    return wide.ids, wide.weights, wide.bias, wide.longest


def _versions(wide: WidePart) -> tuple[int, ...]:
    """How often each tensor was changed in place."""
    return tuple(tensor._version for tensor in _tensors(wide))


def weighting_of(examples: Sequence[Texts], outputs: int) -> Weighting:
    """Return how features are weighted; for pairs inverse document frequencies were not compared."""
    is_few = outputs > 1 and len(examples) < FEW_EXAMPLES * outputs
    return "nb-idf" if is_few and len(examples[0]) == 1 else "nb"


def fit_wide(examples: Sequence[Texts], targets: np.ndarray, outputs: int) -> WideFit:
    """Fit the wide part to training data: class numbers, or with one output numbers."""
    longest = max_ngram([text for texts in examples for text in texts])
    rows = hash_examples(FeatureHasher(longest), examples)
    fold = _folds(examples, targets if outputs > 1 else np.zeros(len(targets), dtype=np.int64))
    scores = np.zeros((len(examples), outputs), dtype=np.float32)
    weighting = weighting_of(examples, outputs)
    best = PENALTIES[0]
    for each in range(FOLDS):
        inside, outside = np.flatnonzero(fold != each), np.flatnonzero(fold == each)
        if not len(inside) or not len(outside):
            continue
        if each == 0:  # the penalty is chosen once, on the first part
            best, scores[outside] = _choose(rows, targets, outputs, inside, outside, weighting)
        else:
            model = fit_linear_model(rows.take(inside), targets[inside], outputs, weighting=weighting, c=best)
            scores[outside] = model.scores(rows.take(outside)).numpy()
    return WideFit(fit_linear_model(rows, targets, outputs, weighting=weighting, c=best), longest, scores)


def hash_examples(hasher: FeatureHasher, examples: Sequence[Texts]) -> SparseRows:
    """Return the features of examples of one text each, or of two."""
    if examples and len(examples[0]) == 2:
        return hasher.pairs([(first, second) for first, second in examples])
    return binary(hasher.texts([text for (text,) in examples]))


def example_key(texts: Texts) -> Hashable:
    """What is equal for equal texts."""
    return tuple(text if isinstance(text, str) else tuple(text) for text in texts)


def _choose(
    rows: SparseRows, targets: np.ndarray, outputs: int, inside: np.ndarray, outside: np.ndarray, weighting: Weighting
) -> tuple[float, np.ndarray]:
    """The penalty with the lowest loss outside the fitted rows, and the scores with it."""
    found = []
    for c in PENALTIES:
        model = fit_linear_model(rows.take(inside), targets[inside], outputs, weighting=weighting, c=c)
        scores = model.scores(rows.take(outside))
        gold = torch.from_numpy(targets[outside])
        loss = F.cross_entropy(scores, gold) if outputs > 1 else F.mse_loss(scores.squeeze(1), gold.to(scores))
        found.append((float(loss), c, scores.numpy()))
    _, best, chosen = min(found, key=lambda each: each[0])
    return best, chosen


def _folds(examples: Sequence[Texts], labels: np.ndarray) -> np.ndarray:
    """The part of each example: equal texts share one, and parts of a text with it; labels are spread evenly."""
    if len(examples[0]) == 1:
        same = np.array(containing_texts([text for (text,) in examples]))
    else:
        first: dict[Hashable, int] = {}
        same = np.array([first.setdefault(example_key(texts), number) for number, texts in enumerate(examples)])
    distinct = np.unique(same)
    keys = [repr(example_key(examples[number])).encode("utf-8", "backslashreplace") for number in distinct]
    hashes = np.array([zlib.crc32(key) for key in keys])
    order = np.lexsort((hashes, labels[distinct]))
    part = np.empty(len(examples), dtype=np.int64)
    part[distinct[order]] = np.arange(len(order)) % FOLDS
    return part[same]
