"""The settings of `polyseme neighbours`, `polyseme senses` and linear probes. Imports no PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import UsageError, arg
from polyseme.text.config import SentencesName

WINDOW = 10
"""Words on each side of a word that tell its sense. Four are nearly as good, more are not better."""


def parse_layer(text: str) -> Literal["top", "mean"] | int:
    """Parse `top`, `mean` or a number.

    >>> parse_layer("top"), parse_layer("1")
    ('top', 1)
    """
    if text in ("top", "mean"):
        return text  # type: ignore[return-value]
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{arg('layer')} is {text!r}; allowed: top, mean, or the number of a layer") from None


@dataclass(frozen=True, kw_only=True)
class SearchedTextConfig(Config):
    """What `neighbours` and `senses` share: the text, and the layer whose vectors are compared."""

    layer: Literal["top", "mean"] | int | None = setting(
        None,
        "Layer to compare, or the mean of all but layer 0.",
        metavar="top|mean|N",
        default_text="top",
        parse=parse_layer,
    )
    sentences: SentencesName | None = setting(
        None,
        "How to split the text into sentences; lines: one sentence per line.",
        default_text="by the splitter of the model: english, chinese, or lines for whitespace",
        group="Text",
    )
    field: str | None = setting(
        None,
        "Field of JSON lines, or column of Parquet, that has the text. If given, standard input and .json files are read as "
        "JSON lines.",
        default_text="text",
        metavar="NAME",
        group="Text",
    )


@dataclass(frozen=True, kw_only=True)
class NeighboursConfig(SearchedTextConfig):
    """Which neighbours are searched, and where."""

    count: int = setting(5, "Number of results.", min=1, flags=("-n",))
    same_word: bool = setting(False, "Search only other occurrences of the same word: shows its senses.")
    other_words: bool = setting(False, "Search only uses of other words.")
    window: int | None = setting(
        None,
        "Context window: this many words on each side are compared too, with the same weight as the word, to tell its sense. "
        "Uses of the same word are also compared by their substitutes. 0: compare only the vectors of the words.",
        min=0,
        metavar="N",
        default_text=f"{WINDOW}; 0 for other words",
    )

    def problems(self) -> Iterable[str]:
        if self.same_word and self.other_words:
            both = f"{arg('same_word', True)} and {arg('other_words', True)}"
            yield f"{both} leave nothing to search: give one of them, or none"

    @property
    def words_around(self) -> int:
        """The window; other words of the same kind are found by the vector alone."""
        return self.window if self.window is not None else 0 if self.other_words else WINDOW

    @property
    def restrict_to_same_word(self) -> bool | None:
        """True: the same word only; False: other words only; None: all."""
        return True if self.same_word else False if self.other_words else None


@dataclass(frozen=True, kw_only=True)
class SensesConfig(SearchedTextConfig):
    """How the uses of a word are grouped into senses."""

    groups: int | None = setting(
        None, "Senses per word.", min=1, default_text="2 to 8, as many as are clear, or 1 if none are", metavar="N"
    )
    min_uses: int = setting(10, "Uses that a word needs to be included, if no words are given.", min=1)
    max_uses: int = setting(1000, "Maximum number of uses to compare for each word, from the beginning of the text.", min=1)


@dataclass(frozen=True, kw_only=True)
class ProbeConfig(Config):
    """How a linear probe is trained."""

    epochs: int = setting(10, "Passes over the training vectors.", min=1, group="Training")
    min_steps: int = setting(500, "Minimum number of steps: small data is passed over more often.", min=0, group="Training")
    batch_size: int = setting(512, "Vectors per batch.", min=1, group="Training")
    learning_rate: float = setting(5e-3, "Initial learning rate; it decays linearly to zero.", above=0, group="Training")
    mix_learning_rate: float = setting(2e-2, "Initial learning rate of the layer mix.", above=0, group="Training")
    weight_decay: float = setting(1e-2, "Weight decay of the softmax layer.", min=0, group="Training")
    seed: int = setting(0, "Seed of the order of the batches.", group="Training")
