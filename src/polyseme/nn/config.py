"""The settings of networks, and the names of their variants. Imports no torch: the command line reads them for `--help`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, ConfigError

Precision = Literal["fp32", "fp16", "bf16", "int8"]
"""Number format of the matrix products of an LSTM at inference."""
Pooling = Literal["mean", "max", "first", "last", "ends"]
"""How the vectors of words become one vector: see `polyseme.nn.pooling.pool`."""
MixNorm = Literal["words", "bilm", "allennlp"]
"""Which layer norm comes before a mix: see `polyseme.nn.mix`."""
AttentionScore = Literal["general", "additive"]
"""How a decoder scores words of the source: Luong's bilinear product, or Bahdanau's hidden layer."""
ORIGINAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
"""Convolution filters of the published ELMo models: (width, count)."""


@dataclass(frozen=True, kw_only=True)
class CharactersConfig(Config):
    """How a word's characters become a vector."""

    alphabet: Literal["utf8", "code_points"] = "utf8"
    """utf8: the bytes of the word, 262 symbols; code_points: its characters, looked up in characters.txt."""
    symbols: int = 262
    """Rows of the character table."""
    dim: int = 16
    """Size of a character's vector."""
    filters: tuple[tuple[int, int], ...] = ORIGINAL_FILTERS
    """Pairs of (width in characters, number of filters)."""
    activation: Literal["relu", "tanh"] = "relu"
    """Applied to the maximum over places."""
    highways: int = 2
    """Highway layers after the convolutions."""
    max_length: int = 50
    """Characters (or bytes) of a word, begin and end marks counted; longer words are cut."""

    def __post_init__(self) -> None:
        if not self.filters or any(width < 1 or count < 1 for width, count in self.filters):
            raise ConfigError(f"filters are {self.filters}; each is (width, count), both at least 1")
        if self.max_length < max(3, self.widest):
            raise ConfigError(f"max_length is {self.max_length}; it must be at least 3 and the widest filter ({self.widest})")
        if self.alphabet == "utf8" and self.symbols != 262:
            raise ConfigError(f"symbols is {self.symbols}; the utf8 alphabet has 262")
        if self.dim < 1 or self.highways < 0:
            raise ConfigError(f"dim is {self.dim} and highways {self.highways}; allowed: at least 1 and at least 0")

    @property
    def widest(self) -> int:
        """Width of the widest filter."""
        return max(width for width, _ in self.filters)

    @property
    def output(self) -> int:
        """Filters in all: the size of the result."""
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, kw_only=True)
class LstmConfig(Config):
    """Sizes of the two LSTM stacks."""

    dim: int = 4096
    """Size of a cell."""
    projection: int | None = 512
    """Size of a layer's output; None: no projection, the output has the size of the cell."""
    layers: int = 2
    """LSTM layers in each direction."""
    cell_clip: float | None = 3.0
    """Cells are kept within plus and minus this; None: not clipped."""
    projection_clip: float | None = 3.0
    """Projected outputs are kept within plus and minus this; None: not clipped."""
    residual: bool = True
    """Add a layer's input to its output, from the second LSTM layer on."""

    def __post_init__(self) -> None:
        for name in ("dim", "layers"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.projection is not None and self.projection < 1:
            raise ConfigError(f"projection is {self.projection}; it must be at least 1, or null for none")
        for name in ("cell_clip", "projection_clip"):
            clip = getattr(self, name)
            if clip is not None and not clip > 0:
                raise ConfigError(f"{name} is {clip}; it must be above 0, or null for no clip")

    @property
    def output(self) -> int:
        """Size of a layer's output in one direction."""
        return self.projection or self.dim


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(Config):
    """Sizes of the two Transformers; their width is that of the words which they read."""

    layers: int = 6
    """Blocks in each direction."""
    heads: int = 8
    """Heads of the attention; the width is divided among them."""
    inner: int = 2048
    """Size inside the feed-forward part."""

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "inner"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")

    def head_size(self, dim: int) -> int:
        """Numbers of each head at a given width; even, since rotary positions turn pairs."""
        if dim % (2 * self.heads):
            raise ConfigError(f"dim is {dim}; with {self.heads} heads it must be a multiple of {2 * self.heads}")
        return dim // self.heads


@dataclass(frozen=True, kw_only=True)
class AwdDropout(Config):
    """Shares that are dropped in training; the usual ones are those published for the Penn Treebank."""

    words: float = 0.1
    """Of the words of the vocabulary, with their whole vectors."""
    input: float = 0.4
    """Of what the first layer reads."""
    hidden: float = 0.25
    """Of what goes from layer to layer."""
    output: float = 0.4
    """Of what the output layer reads."""
    weight: float = 0.5
    """Of the weights from state to gate."""

    def __post_init__(self) -> None:
        problems = [
            f"{name} is {rate}; allowed: from 0 to below 1" for name, rate in self.to_dict().items() if not 0 <= rate < 1
        ]
        if problems:
            raise ConfigError("; ".join(problems))

    def times(self, factor: float) -> AwdDropout:
        """All shares by a factor, as ULMFiT turns them up and down together.

        >>> AwdDropout().times(0.5).weight
        0.25
        """
        return AwdDropout(**{name: rate * factor for name, rate in self.to_dict().items()})
