"""How word2vec and fastText are trained: the settings, with gensim's defaults. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.encoders.config import ngram_length_problems
from polyseme.pretraining.method import Method


@dataclass(frozen=True, kw_only=True)
class Word2VecPretraining(Method):
    """Train word2vec (Mikolov et al. 2013) with gensim: one vector for each word.

    >>> Word2VecPretraining(hierarchical_softmax=True).gensim_settings(seed=1)["negative"]
    0
    """

    name: ClassVar[str] = "word2vec"
    job: ClassVar[str] = "polyseme.pretraining.word2vec:Word2VecJob"
    call_options: ClassVar[tuple[str, ...]] = ("seed",)

    dim: int = setting(100, "Size of a word vector.", min=1, group="Model")
    architecture: Literal["cbow", "skip-gram"] = setting(
        "cbow",
        "cbow predicts a word from its neighbours, skip-gram each neighbour from the word (slower, better for rare words).",
        group="Model",
    )
    window: int = setting(5, "Largest distance of a neighbour; the distance is sampled for each word.", min=1, group="Model")
    min_count: int = setting(5, "Rarer words are ignored.", min=1, group="Model")
    epochs: int = setting(5, "Passes over the text.", min=1, group="Budget")
    negative: int | None = setting(
        None, "Negative samples per word.", min=0, default_text="5; 0 with hierarchical_softmax", group="Training"
    )
    hierarchical_softmax: bool = setting(False, "Predict words by their path through a Huffman tree.", group="Training")
    sample: float = setting(
        1e-3, "Downsample words whose relative frequency is above this; 0: no downsampling.", min=0, below=1, group="Training"
    )
    learning_rate: float = setting(0.025, "Initial learning rate; it falls to 0.0001.", above=0, group="Training")
    threads: int = setting(1, "Training threads. With more than one, results differ from run to run.", min=1, group="Computing")

    def problems(self) -> Iterable[str]:
        if self.negative == 0 and not self.hierarchical_softmax:
            yield f"{arg('negative', 0)} needs {arg('hierarchical_softmax', True)}: without both there is no loss"

    def resolve_defaults(self) -> Self:
        """Return a copy without open settings."""
        return self if self.negative is not None else self.replace(negative=0 if self.hierarchical_softmax else 5)

    def gensim_settings(self, seed: int) -> dict[str, Any]:
        """Return the settings under gensim's names."""
        return {
            "vector_size": self.dim,
            "sg": int(self.architecture == "skip-gram"),
            "window": self.window,
            "min_count": self.min_count,
            "epochs": self.epochs,
            "negative": self.resolve_defaults().negative,
            "hs": int(self.hierarchical_softmax),
            "sample": self.sample,
            "alpha": self.learning_rate,
            "workers": self.threads,
            "seed": seed % 2**31,
        }


@dataclass(frozen=True, kw_only=True)
class FastTextPretraining(Word2VecPretraining):
    """Train fastText (Bojanowski et al. 2017) with gensim: words and character n-grams, for vectors of unknown words."""

    name: ClassVar[str] = "fasttext"
    job: ClassVar[str] = "polyseme.pretraining.word2vec:FastTextJob"

    min_n: int = setting(3, "Length of the shortest character n-grams, word boundaries included.", min=1, group="Subwords")
    max_n: int = setting(6, "Length of the longest character n-grams.", min=1, group="Subwords")
    buckets: int = setting(
        200_000,
        "Rows that the n-grams share by their hash. Published: 2,000,000, which take 800 MB with 100 dimensions.",
        min=1,
        group="Subwords",
    )

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        yield from ngram_length_problems(self.min_n, self.max_n)

    def gensim_settings(self, seed: int) -> dict[str, Any]:
        return super().gensim_settings(seed) | {"min_n": self.min_n, "max_n": self.max_n, "bucket": self.buckets}
