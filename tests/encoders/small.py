"""Small random models for tests."""

from __future__ import annotations

import random

import torch

from polyseme.encoders.elmo import WARM_UP as WARM_UP
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.nn.config import CharactersConfig, LstmConfig, TransformerConfig
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "sat",
    "on",
    "mat",
    "bank",
    "river",
    "money",
    "of",
    "in",
    ",",
    ".",
    "antidisestablishmentarianism",
    "naïve",
    "漢字",
    "😀",
]
CHARACTERS = CharactersConfig(dim=4, filters=((1, 4), (2, 6), (3, 6)), highway_layers=1)
LSTM = LstmConfig(cell_size=12, projection_size=8)
TRANSFORMER = TransformerConfig(layers=3, heads=2, feedforward_size=16)


def vocabulary() -> Vocabulary:
    return Vocabulary(["<S>", "</S>", "<UNK>", *WORDS])


def elmo(
    *,
    form: str = "characters",
    start: str = "zero",
    output: bool = False,
    lstm: LstmConfig = LSTM,
    transformer: TransformerConfig | None = None,
    seed: int = 0,
    kind: type[Elmo] = Elmo,
) -> Elmo:
    """A model that reads characters, words or both."""
    torch.manual_seed(seed)
    words = WordTableConfig(size=len(vocabulary()), dim=5) if form != "characters" else None
    config = ElmoConfig(
        characters=CHARACTERS if form != "words" else None,
        words=words,
        dim=8,
        lstm=lstm,
        transformer=transformer,
        start=start,  # type: ignore[arg-type]
    )
    needs_words = words is not None or output
    model = kind(
        config,
        vocabulary=vocabulary() if needs_words else None,
        output=FullSoftmax(len(vocabulary()), config.output) if output else None,
    )
    if model.learned is not None:
        for parameter in model.learned.values():
            torch.nn.init.normal_(parameter)
    return model.eval()


def sentences(count: int, seed: int = 0, longest: int = 12) -> list[list[str]]:
    source = random.Random(seed)
    return [source.choices(WORDS, k=source.randint(0, longest)) for _ in range(count)]
