"""The settings of networks, and the names of their variants. Imports no torch: the command line reads them for `--help`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, ConfigError, setting
from polyseme.base.errors import arg

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
    """The character CNN: how a word's characters become a vector."""

    alphabet: Literal["utf8", "code_points"] = setting(
        "utf8", "Unit of a word: its UTF-8 bytes (262 symbols), or its characters as listed in characters.txt.", option=False
    )
    symbols: int = setting(262, "Rows of the character table.", min=1, option=False)
    dim: int = setting(16, "Size of a character vector.", min=1, option="character_dim", group="Architecture")
    filters: tuple[tuple[int, int], ...] = setting(
        ORIGINAL_FILTERS, "Convolution filters: pairs of (width in characters, number of filters).", group="Architecture"
    )
    activation: Literal["relu", "tanh"] = setting("relu", "Activation after max pooling.", option=False)
    highway_layers: int = setting(2, "Highway layers after the convolutions.", min=0, group="Architecture")
    max_length: int = setting(
        50,
        "Characters (or bytes) of a word, with its begin and end symbols; longer words are truncated.",
        min=3,
        option="max_characters",
        group="Architecture",
    )

    def problems(self) -> Iterable[str]:
        if not self.filters or any(width < 1 or count < 1 for width, count in self.filters):
            yield f"{arg('filters')} is {self.filters}; each filter is (width, count), both 1 or more"
        elif self.max_length < self.widest:
            yield f"{arg('max_characters')} is {self.max_length}; the widest filter needs {self.widest} or more"
        if self.alphabet == "utf8" and self.symbols != 262:
            yield f"symbols is {self.symbols}; the utf8 alphabet has 262"

    @property
    def widest(self) -> int:
        """Width of the widest filter."""
        return max(width for width, _ in self.filters)

    @property
    def output_size(self) -> int:
        """Size of the result: the number of all filters."""
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, kw_only=True)
class LstmConfig(Config):
    """Sizes of the two LSTM stacks."""

    cell_size: int = setting(4096, "Size of an LSTM cell.", min=1, group="Architecture")
    projection_size: int | None = setting(
        512, "Size of a layer's output in one direction; null: that of the cell.", min=1, group="Architecture"
    )
    layers: int = setting(2, "LSTM layers in each direction.", min=1, group="Architecture")
    cell_clip: float | None = setting(3.0, "Clip cells to plus and minus this; null: no clipping.", above=0, option=False)
    projection_clip: float | None = setting(
        3.0, "Clip projected outputs to plus and minus this; null: no clipping.", above=0, option=False
    )
    residual: bool = setting(True, "Add a layer's input to its output, from the second LSTM layer on.", option=False)

    @property
    def output_size(self) -> int:
        """Size of a layer's output in one direction."""
        return self.projection_size or self.cell_size


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(Config):
    """Sizes of the two Transformers; their width is that of the words that they read."""

    layers: int = setting(6, "Transformer blocks in each direction.", min=1, group="Architecture")
    heads: int = setting(8, "Attention heads.", min=1, group="Architecture")
    feedforward_size: int = setting(2048, "Size of the feed-forward layer.", min=1, group="Architecture")

    def head_size(self, dim: int) -> int:
        """Size of each head at a given width; even, since rotary positions rotate pairs."""
        if dim % (2 * self.heads):
            raise ConfigError(f"dim is {dim}; with {self.heads} heads it must be a multiple of {2 * self.heads}")
        return dim // self.heads


@dataclass(frozen=True, kw_only=True)
class AwdDropout(Config):
    """Dropout probabilities of an AWD-LSTM; the defaults are those published for the Penn Treebank."""

    words: float = setting(0.1, "Dropout of words with their vectors.", min=0, below=1, option="word_dropout", group="Training")
    input: float = setting(
        0.4, "Dropout of the input of the first layer.", min=0, below=1, option="input_dropout", group="Training"
    )
    hidden: float = setting(0.25, "Dropout between layers.", min=0, below=1, option="hidden_dropout", group="Training")
    output: float = setting(
        0.4, "Dropout of the input of the output layer.", min=0, below=1, option="output_dropout", group="Training"
    )
    weight: float = setting(
        0.5, "Dropout of the recurrent weights (DropConnect).", min=0, below=1, option="weight_dropout", group="Training"
    )

    def times(self, factor: float) -> AwdDropout:
        """All probabilities times a factor, as ULMFiT scales them together.

        >>> AwdDropout().times(0.5).weight
        0.25
        """
        return AwdDropout(**{name: rate * factor for name, rate in self.to_dict().items()})
