"""The configs of all encoders but ELMo, whose config is in `elmo_config`. Imports no torch, so that `--help` is quick."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg

CachePrecision = Literal["fp16", "fp32"]
"""How cached layers are stored."""
Smoothing = Literal["kneser-ney", "absolute", "none"]
"""How n-gram probabilities are estimated."""
SubwordPooling = Literal["first", "last", "mean"]
"""Which subwords of a word give its vector."""
Unfreeze = Literal["all", "top", "gradual"]
"""Which layer groups of an encoder train: all, the top one, or one more from the top down each tenth of the run."""


@dataclass(frozen=True, kw_only=True)
class LeftToRightConfig(Config):
    """The vocabulary of a left-to-right language model."""

    size: int = setting(help="Words of the vocabulary, special tokens included.", min=1)
    dim: int = setting(help="Size of a word vector.", min=1)
    begin: str = setting("<s>", "Token before the first word of a sentence.")
    end: str = setting("</s>", "Token after the last word of a sentence.")
    unknown: str = setting("<unk>", "Token for words outside the vocabulary.")


@dataclass(frozen=True, kw_only=True)
class NnlmConfig(LeftToRightConfig):
    """The neural probabilistic language model (Bengio et al. 2003)."""

    order: int = setting(5, "Words of an n-gram: each word depends on one less.", min=2)
    hidden_size: int = setting(500, "Units of the tanh layer.", min=1)
    direct_connections: bool = setting(False, "Connect the word vectors to the output layer directly, too.")

    @property
    def context(self) -> int:
        """Size of a context: its word vectors, concatenated."""
        return (self.order - 1) * self.dim


@dataclass(frozen=True, kw_only=True)
class UlmfitConfig(LeftToRightConfig):
    """The AWD-LSTM of ULMFiT; the defaults are the published sizes."""

    dim: int = setting(400, "Size of a word vector, and of the last layer.", min=1)
    hidden_size: int = setting(1150, "Units of the other layers.", min=1)
    layers: int = setting(3, "LSTM layers.", min=1)
    backward: bool = setting(False, "Read from right to left.")


@dataclass(frozen=True, kw_only=True)
class FlairConfig(Config):
    """Flair's character language models, of one or two directions of equal sizes."""

    symbols: int = setting(help="Characters of the table, `<unk>` included.", min=1)
    character_dim: int = setting(100, "Size of a character vector.", min=1, max=65_536)
    hidden_size: int = setting(2048, "Units of an LSTM.", min=1, max=65_536)
    lstm_layers: int = setting(1, "LSTM layers of a direction.", min=1, max=64)
    projection_size: int | None = setting(
        None, "Size that the states are projected to.", min=1, max=65_536, default_text="no projection"
    )
    directions: tuple[Literal["forward", "backward"], ...] = setting(("forward", "backward"), "Directions of reading.")
    document_delimiter: str = setting("\n", "What is read before a sentence.")

    def problems(self) -> Iterable[str]:
        if not self.directions or len(set(self.directions)) < len(self.directions):
            yield f"{arg('directions')} is {list(self.directions)}; allowed: forward, backward, or each of them once"


@dataclass(frozen=True, kw_only=True)
class NgramConfig(Config):
    """An n-gram language model."""

    order: int = setting(help="Words of the longest n-grams; the context has one less.", min=1)
    begin: str = setting("<s>", "Token before the first word of a sentence.")
    end: str = setting("</s>", "Token after the last word of a sentence.")
    unknown: str | None = setting("<unk>", "Token for words outside the vocabulary.", default_text="closed vocabulary")
    smoothing: Smoothing | None = setting(None, "How the probabilities were estimated.", default_text="unknown")
    discounts: tuple[tuple[float, ...], ...] = setting((), "For each order, the discounts of the counts 1, 2, and 3 or more.")


@dataclass(frozen=True, kw_only=True)
class WordVectorConfig(Config):
    """A table of word vectors, and how words are looked up in it."""

    size: int = setting(help="Words of the table.", min=1)
    dim: int = setting(help="Size of a word vector.", min=1)
    unknown: Literal["vector", "random", "zero"] = setting(
        "vector",
        "Vector of a word outside the table: that of `<unk>`, `UNK` or `<UNK>` (the mean of all vectors where the table has "
        "none), a random vector of its own that is the same in every run, or zeros.",
    )
    lowercase: Literal["auto", "fallback", "never"] = setting(
        "auto", "Look up unknown words in lower case: in tables without capitals, always, or never."
    )


@dataclass(frozen=True, kw_only=True)
class FastTextConfig(WordVectorConfig):
    """A table of word vectors, and the character n-grams of which vectors of unknown words are made."""

    unknown: Literal["vector", "random", "zero"] = setting("zero", "Vector of a word that is too short for any n-gram.")
    min_n: int = setting(3, "Length of the shortest character n-grams.", min=1)
    max_n: int = setting(6, "Length of the longest character n-grams.", min=1)
    buckets: int = setting(help="Rows that the n-grams share by their hash.", min=1)

    def problems(self) -> Iterable[str]:
        if self.unknown != "zero":
            yield f"{arg('unknown')} is {self.unknown!r}; allowed for fastText: 'zero'"
        yield from ngram_length_problems(self.min_n, self.max_n)


def ngram_length_problems(min_n: int, max_n: int) -> Iterable[str]:
    """What is wrong with the lengths of character n-grams."""
    if min_n > max_n:
        yield f"{arg('min_n')} is {min_n} and {arg('max_n')} is {max_n}; {arg('min_n')} must not be larger"


@dataclass(frozen=True, kw_only=True)
class SubwordConfig(Config):
    """How vectors of words are made from those of subwords; the network's own config is that of transformers."""

    subword_pooling: SubwordPooling = setting("first", "Vector of a word: that of its first or last subword, or their mean.")
    window: int | None = setting(
        None, "Subwords that are read at once, special tokens included.", min=4, default_text="the network's maximum length"
    )
    overlap: float = setting(0.5, "Fraction of a window that the next one reads again.", min=0, below=1)
