"""What options of `polyseme train` can be, where they are names."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """What becomes of the encoders."""

    frozen = "frozen"
    finetune = "finetune"


class Layers(StrEnum):
    """Which layers of an encoder are read."""

    mix = "mix"
    top = "top"
    all = "all"


class LayerNorm(StrEnum):
    """How layers are scaled before they are mixed."""

    words = "words"
    bilm = "bilm"
    none = "none"


class Thaw(StrEnum):
    """What is fine-tuned."""

    all = "all"
    top = "top"
    gradual = "gradual"


class Unknown(StrEnum):
    """What a word outside all tables gets."""

    shared = "shared"
    random = "random"


class Kind(StrEnum):
    """Kinds of tables."""

    tsv = "tsv"
    csv = "csv"
    jsonl = "jsonl"
    lines = "lines"


class Phrases(StrEnum):
    """Which phrases of trees are trained on."""

    none = "none"
    distinct = "distinct"
    all = "all"


class TextNetwork(StrEnum):
    """Networks for texts."""

    bcn = "bcn"
    pooled = "pooled"
    linear = "linear"


class PairNetwork(StrEnum):
    """Networks for pairs."""

    esim = "esim"
    siamese = "siamese"
    linear = "linear"


class Rules(StrEnum):
    """How answers to questions are compared."""

    squad = "squad"
    squad2 = "squad2"
    cmrc = "cmrc"


class Attention(StrEnum):
    """How a generator compares its states with the source."""

    general = "general"
    additive = "additive"


class TargetSplitter(StrEnum):
    """How raw targets become words."""

    whitespace = "whitespace"
    english = "english"
    chinese = "chinese"
    characters = "characters"


class Goal(StrEnum):
    """What is said of a pair."""

    classes = "classes"
    score = "score"


class ReadingNetwork(StrEnum):
    """Networks for questions."""

    bidaf = "bidaf"
    linear = "linear"


class Head(StrEnum):
    """What stands above an encoder that reads whole examples."""

    linear = "linear"
    tanh = "tanh"
    hidden = "hidden"


class RateDecay(StrEnum):
    """How the learning rate falls."""

    linear = "linear"
    cosine = "cosine"
    constant = "constant"
    slanted = "slanted"
