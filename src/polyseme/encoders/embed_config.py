"""How lines of text become vectors: the settings of `polyseme embed`, `verify` and `encode`. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import UsageError, arg

BATCH_CPU, BATCH_CUDA = (8192, 128), (32768, 1024)  # words and sentences of a batch

TextPooling = Literal["sif+mean", "sif", "mean", "max", "first", "last", "ends"]
"""How `encode` makes one vector of a text: see `polyseme.encoders.sentence_vectors`, and `polyseme.nn.pooling` for the rest."""


def parse_layers(text: str) -> str | int | tuple[int, ...]:
    """Parse `all`, `top`, `mean`, a number, or numbers separated by commas.

    >>> parse_layers("top"), parse_layers("2"), parse_layers("0,2")
    ('top', 2, (0, 2))
    """
    if text in ("all", "top", "mean"):
        return text
    try:
        numbers = tuple(int(each) for each in text.split(","))
    except ValueError:
        allowed = "all, top, mean, the number of a layer, or several numbers separated by commas"
        raise UsageError(f"{arg('layers')} is {text!r}; allowed: {allowed}") from None
    return numbers if "," in text else numbers[0]


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Config):
    """How lines become vectors."""

    layers: Literal["all", "top", "mean"] | int | tuple[int, ...] = setting(
        "all",
        "Layers to return: all or several give (layers, words, dim) per line; top, mean or one number gives (words, dim).",
        metavar="all|top|mean|N|N,N",
        parse=parse_layers,
    )
    start: Literal["learned", "zero", "warm", "carry"] | None = setting(
        None,
        "Initial state of the language model: learned, zeros, warmed up on full stops, or carried over from the line before.",
        default_text="the model's own",
        group="Computing",
    )
    fp16: bool = setting(False, "Store 16-bit floats: half the size, about three digits.")
    split_on_spaces: bool = setting(False, "The text is tokenized: split it at spaces only.")
    batch_words: int | None = setting(
        None,
        "Words per batch; fewer need less memory.",
        min=1,
        default_text=f"{BATCH_CPU[0]:,}; {BATCH_CUDA[0]:,} on a GPU, and for long texts",
        group="Computing",
    )
    batch_size: int | None = setting(
        None,
        "Maximum number of lines per batch; with a carried state, the number of states.",
        min=1,
        default_text=f"{BATCH_CPU[1]:,}; {BATCH_CUDA[1]:,} on a GPU",
        group="Computing",
    )
    save_every: float = setting(
        2.0, "Seconds between two saves of the work so far; 0: after every chunk.", min=0, metavar="SECONDS", group="Computing"
    )

    @property
    def single_layer(self) -> bool:
        """Whether a word gets one vector, so that a line is (words, dim)."""
        return self.layers in ("top", "mean") or isinstance(self.layers, int)


@dataclass(frozen=True, kw_only=True)
class EncodeConfig(Config):
    """How each line becomes one vector."""

    pooling: TextPooling | None = setting(
        None,
        "How word vectors become one vector. sif: mean weighted by inverse word frequency, for similarity. sif+mean: with the "
        "means of the upper layers, for classifiers too. mean, max, first, last, ends: of the mean of all layers.",
        default_text="sif+mean; mean for models without statistics of their text",
    )
    normalize: bool = setting(False, "Scale every vector to unit length.")
    split_on_spaces: bool = setting(False, "The text is tokenized: split it at spaces only.")
    batch_size: int = setting(32, "Maximum number of lines per batch.", min=1, group="Computing")
