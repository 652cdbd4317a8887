"""How GloVe is trained: the settings. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.base.config import setting
from polyseme.pretraining.method import Method

SAMPLE, LONG_TEXT = 1e-4, 1_000_000  # a fraction of the words, and words


@dataclass(frozen=True, kw_only=True)
class GlovePretraining(Method):
    """Train GloVe (Pennington et al. 2014): vectors whose products are the logarithms of co-occurrence counts.

    >>> GlovePretraining(dim=50).window
    10
    """

    name: ClassVar[str] = "glove"
    job: ClassVar[str] = "polyseme.pretraining.glove:GloveJob"
    call_options: ClassVar[tuple[str, ...]] = ("seed", "device")

    dim: int = setting(100, "Size of a word vector.", min=1, group="Model")
    window: int = setting(10, "Largest distance of a neighbour; a neighbour at distance d counts 1/d.", min=1, group="Model")
    min_count: int = setting(5, "Rarer words are ignored.", min=1, group="Model")
    vocabulary_size: int | None = setting(None, "Most frequent words.", min=1, default_text="all words", group="Model")
    sample: float | None = setting(
        None,
        "Downsample words whose relative frequency is above this, as word2vec does; 0: no downsampling, as published.",
        min=0,
        below=1,
        default_text=f"{SAMPLE:.4f}; 0 for less than a million words",
        group="Training",
    )
    epochs: int = setting(12, "Passes over the pairs.", min=1, group="Budget")
    x_max: float = setting(
        10.0,
        "Co-occurrence count from which pairs have full weight. Published: 100, for billions of words.",
        above=0,
        group="Training",
    )
    alpha: float = setting(0.75, "Exponent of the weighting function below x_max.", above=0, group="Training")
    learning_rate: float = setting(0.2, "Learning rate of AdaGrad.", above=0, group="Training")
    batch_pairs: int | None = setting(None, "Pairs per batch.", min=1, default_text="4,096; 65,536 on a GPU", group="Training")
