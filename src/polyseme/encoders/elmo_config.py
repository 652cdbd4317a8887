"""What an ELMo is made of, and the published sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, ConfigError, setting
from polyseme.base.errors import arg
from polyseme.nn.config import CharactersConfig, LstmConfig, TransformerConfig

Start = Literal["learned", "zero", "warm", "carry"]
"""The start state of a sentence: a trained parameter, zeros, the state after reading full stops, or that after the sentence
before."""


@dataclass(frozen=True, kw_only=True)
class WordTableConfig(Config):
    """A table with a vector for each word of vocabulary.txt."""

    size: int = setting(help="Rows of the table.", min=1)
    dim: int = setting(help="Size of a row.", min=1)
    max_characters: int | None = setting(
        None, "Words are looked up by their first characters only, as in ELMoForManyLangs.", default_text="the whole word"
    )


@dataclass(frozen=True, kw_only=True)
class ElmoConfig(Config):
    """What an ELMo is made of; the defaults are the published ones.

    >>> ElmoConfig(dim=128).start
    'zero'
    """

    characters: CharactersConfig | None = setting(help="Character network; None: no characters.", factory=CharactersConfig)
    words: WordTableConfig | None = setting(
        None, "Word table; None: no table. With both, their vectors are concatenated, the table's first."
    )
    dim: int = setting(512, "Size of a word's own vector, the input of the LSTMs or Transformers.", min=1)
    project: bool = setting(True, "Project the input vector to `dim`; without it, its size must be `dim`.")
    lstm: LstmConfig = setting(help="The two stacks of LSTMs; unused where `transformer` is given.", factory=LstmConfig)
    transformer: TransformerConfig | None = setting(None, "Two causal Transformers of size `dim` instead of LSTMs.")
    start: Literal["learned", "zero", "warm"] = setting("zero", "Default start state of a sentence.")
    normalize_quotes: bool = setting(
        False, "Read curly quotes, and in lists of words Penn Treebank escapes (``, -LRB-), as plain ASCII characters."
    )
    begin: str = setting("<S>", "Token before the first word of a sentence.")
    end: str = setting("</S>", "Token after the last word of a sentence.")
    unknown: str = setting("<UNK>", "Token for words outside the vocabulary.")

    def problems(self) -> Iterable[str]:
        if self.characters is None and self.words is None:
            yield f"{arg('characters')} and {arg('words')} are both missing; give one of them"
        elif not self.project and self.inputs != self.dim:
            yield f"{arg('dim')} is {self.dim}, but the input has size {self.inputs}; set project to true"
        if self.transformer is not None:
            try:
                self.transformer.head_size(self.dim)
            except ConfigError as error:
                yield str(error)
            if self.start != "zero":
                yield f"{arg('start')} is {self.start!r}, but a Transformer has no start state; allowed: 'zero'"

    def check_tied(self, vocabulary: int) -> None:
        """Raise an error if an output layer for so many words cannot be tied to the word table."""
        if self.words is None or not vocabulary:
            raise ConfigError("a tied output layer needs a word table, but this model has only characters")
        if self.words.dim != self.output:
            raise ConfigError(
                f"a tied output layer needs rows of the size that the encoder gives; the word table's have {self.words.dim}, "
                f"the encoder gives {self.output}: set words.dim to {self.output}, or take an output layer that is not tied"
            )
        if self.words.size != vocabulary:
            raise ConfigError(
                f"a tied output layer needs a row for each word; the table has {self.words.size} rows, the vocabulary "
                f"{vocabulary} words: set words.size to {vocabulary}"
            )

    @property
    def inputs(self) -> int:
        """Size of the input vector before the projection."""
        return (self.words.dim if self.words else 0) + (self.characters.output_size if self.characters else 0)

    @property
    def architecture(self) -> Literal["lstm", "transformer"]:
        """The kind of network above the word vectors."""
        return "lstm" if self.transformer is None else "transformer"

    @property
    def num_layers(self) -> int:
        """Layers above the word vectors, in each direction."""
        return self.lstm.layers if self.transformer is None else self.transformer.layers

    @property
    def output(self) -> int:
        """Output size of one direction."""
        return self.lstm.output_size if self.transformer is None else self.dim

    @property
    def half(self) -> int:
        """Size of one direction's half of a vector: that of the widest layer."""
        return max(self.dim, self.output)


def _size(dim: int, projection: int, highways: int) -> ElmoConfig:
    return ElmoConfig(
        characters=CharactersConfig(highway_layers=highways),
        dim=projection,
        lstm=LstmConfig(cell_size=dim, projection_size=projection),
    )


SIZES = {
    "tiny": ElmoConfig(
        characters=CharactersConfig(filters=((1, 8), (2, 16), (3, 24)), highway_layers=1),
        dim=16,
        lstm=LstmConfig(cell_size=32, projection_size=16),
    ),
    "small": _size(1024, 128, 1),
    "medium": _size(2048, 256, 1),
    "original": _size(4096, 512, 2),
}
"""The published sizes (2048 filters each): 13.6, 28.0 and 93.6 million parameters. `tiny` is for tests and first trials."""

TRANSFORMERS = {
    "tiny": TransformerConfig(layers=2, heads=2, feedforward_size=64),
    "small": TransformerConfig(layers=4, heads=2, feedforward_size=512),
    "medium": TransformerConfig(layers=4, heads=4, feedforward_size=1024),
    "original": TransformerConfig(layers=6, heads=8, feedforward_size=2048),
}
"""The Transformers for each size: heads of 64 units (8 for `tiny`) and a feed-forward layer of four times the width.

Twelve such blocks have as many parameters as the two LSTM layers of the same size. We use a third to a half: more than two,
because a block does less than an LSTM layer, and fewer than twelve, because each layer is one more vector per word."""
