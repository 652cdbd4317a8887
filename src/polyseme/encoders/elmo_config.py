"""What an ELMo is made of, and the published sizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import Config, ConfigError
from polyseme.nn.config import CharactersConfig, LstmConfig, TransformerConfig


@dataclass(frozen=True, kw_only=True)
class WordTableConfig(Config):
    """A table with a vector for each word of vocabulary.txt."""

    size: int
    """Rows of the table."""
    dim: int
    """Size of a row."""
    cut: int | None = None
    """Words are looked up by their first so many characters (ELMoForManyLangs does so); None: whole."""


@dataclass(frozen=True, kw_only=True)
class ElmoConfig(Config):
    """What an ELMo is made of.

    >>> ElmoConfig(dim=128, lstm=LstmConfig(dim=1024, projection=128)).start    # other values stay as published
    'zero'
    """

    characters: CharactersConfig | None = field(default_factory=CharactersConfig)
    """The character network; None: no characters."""
    words: WordTableConfig | None = None
    """The word table; None: no table. With both, their vectors are laid side by side, the table's first."""
    dim: int = 512
    """Size of a word's own vector, which the trunk reads."""
    project: bool = True
    """Bring the input's vector to `dim` by a matrix; without it, its size must be `dim` already."""
    lstm: LstmConfig = field(default_factory=LstmConfig)
    """The two stacks of LSTMs; not used where `transformer` is given."""
    transformer: TransformerConfig | None = None
    """Two causal Transformers as wide as the words, in place of the LSTMs; None: LSTMs."""
    start: Literal["learned", "zero", "warm"] = "zero"
    """How a sentence begins where the user does not say."""
    plain_words: bool = False
    """Curly quotes, and in lists of words the Penn Treebank's escapes (``, -LRB-), are read as the straight signs of the
    training text."""
    begin: str = "<S>"
    """The begin mark of a sentence."""
    end: str = "</S>"
    """The end mark of a sentence."""
    unknown: str = "<UNK>"
    """The vocabulary's word for all others."""

    def __post_init__(self) -> None:
        sizes = {"dim": self.dim}
        if self.words is not None:
            sizes |= {"words.size": self.words.size, "words.dim": self.words.dim}
        for name, value in sizes.items():
            if value < 1:
                raise ConfigError(f"{name} is {value}; it must be at least 1")
        if self.characters is None and self.words is None:
            raise ConfigError("neither characters nor words are given; a model needs one of them")
        if not self.project and self.inputs != self.dim:
            raise ConfigError(f"dim is {self.dim}, but the input has size {self.inputs}; set project to true")
        if self.transformer is not None:
            self.transformer.head_size(self.dim)
            if self.start != "zero":
                raise ConfigError(f"start is {self.start!r}, but a Transformer has no state to start from; allowed: 'zero'")

    @property
    def inputs(self) -> int:
        """Size of the input's vector before the projection."""
        return (self.words.dim if self.words else 0) + (self.characters.output if self.characters else 0)

    @property
    def architecture(self) -> Literal["lstm", "transformer"]:
        """What reads the words' vectors."""
        return "lstm" if self.transformer is None else "transformer"

    @property
    def num_layers(self) -> int:
        """Layers of the trunk, in each direction."""
        return self.lstm.layers if self.transformer is None else self.transformer.layers

    @property
    def output(self) -> int:
        """Size of the trunk's output in one direction."""
        return self.lstm.output if self.transformer is None else self.dim

    @property
    def half(self) -> int:
        """Size of one direction's half of a vector: the widest of all layers."""
        return max(self.dim, self.output)


def _size(dim: int, projection: int, highways: int) -> ElmoConfig:
    return ElmoConfig(
        characters=CharactersConfig(highways=highways),
        dim=projection,
        lstm=LstmConfig(dim=dim, projection=projection),
    )


SIZES = {
    "tiny": ElmoConfig(
        characters=CharactersConfig(filters=((1, 8), (2, 16), (3, 24)), highways=1),
        dim=16,
        lstm=LstmConfig(dim=32, projection=16),
    ),
    "small": _size(1024, 128, 1),
    "medium": _size(2048, 256, 1),
    "original": _size(4096, 512, 2),
}
"""The published sizes (2048 filters each): 13.6, 28.0 and 93.6 million parameters; and `tiny`, for tests and first tries."""

TRANSFORMERS = {
    "tiny": TransformerConfig(layers=2, heads=2, inner=64),
    "small": TransformerConfig(layers=4, heads=2, inner=512),
    "medium": TransformerConfig(layers=4, heads=4, inner=1024),
    "original": TransformerConfig(layers=6, heads=8, inner=2048),
}
"""The Transformers for each size: heads of 64 numbers (8 for `tiny`) and a feed-forward part of four times the width, as usual.

Twelve such blocks have as many parameters as the two LSTM layers of the same size. Here are a third to a half of them: more
than two, since a block does less than an LSTM layer, and fewer than twelve, since every layer is one more vector a word."""
