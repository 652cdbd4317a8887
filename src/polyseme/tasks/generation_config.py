"""The settings of generation, and of decoding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg
from polyseme.nn.config import AttentionScore
from polyseme.tasks.config import FeaturesConfig, TaskConfig

TargetSplitter = Literal["whitespace", "english", "chinese", "characters"]
STRATEGY_OPTIONS = {
    "beam": ("num_beams", "length_penalty"),
    "sample": ("temperature", "top_k", "top_p", "sampling_seed"),
}
"""Options of one decoding strategy alone."""


@dataclass(frozen=True, kw_only=True)
class DecodingConfig(Config):
    """How texts are generated from the network's probabilities."""

    strategy: Literal["beam", "sample"] = setting(
        "beam", "Decoding strategy: beam search or random sampling.", group="Decoding"
    )
    num_beams: int = setting(5, "Beam size of beam search; 1: greedy.", min=1, group="Decoding")
    length_penalty: float = setting(
        1.0,
        "Exponent of the length that divides log-probabilities: 0 prefers short texts, above 1 long ones.",
        min=0,
        below=math.inf,
        group="Decoding",
    )
    max_length: int = setting(200, "Maximum number of words of a generated text.", min=1, group="Decoding")
    num_return_sequences: int = setting(
        1, "Generated texts for each source text; with beam search at most the beam size.", min=1, group="Decoding"
    )
    temperature: float = setting(
        1.0, "Temperature of sampling: below 1 sharpens the distribution.", above=0, below=math.inf, group="Decoding"
    )
    top_k: int = setting(0, "Sample from the k most probable words; 0: all.", min=0, group="Decoding")
    top_p: float = setting(
        1.0, "Sample from the fewest words with at least this total probability.", above=0, max=1, group="Decoding"
    )
    sampling_seed: int = setting(0, "Seed of sampling.", min=0, group="Decoding")

    def problems(self) -> Iterable[str]:
        if self.strategy == "beam" and self.num_return_sequences > self.num_beams:
            yield f"{arg('num_return_sequences', self.num_return_sequences)} exceeds {arg('num_beams', self.num_beams)}"


@dataclass(frozen=True, kw_only=True)
class GenerationConfig(TaskConfig):
    """A sequence-to-sequence network."""

    allows_between = True

    features: FeaturesConfig = field(default_factory=lambda: FeaturesConfig(norm="none"))
    source: str | None = setting(
        None,
        "Suffix of the source files (en), or column of a table by name or number from 0.",
        default_text="a column with a common name, else the first",
        metavar="NAME",
        group="Data",
    )
    target: str | None = setting(
        None,
        "Suffix of the target files (de), or column of a table by name or number from 0.",
        default_text="the column that belongs to the source, else the second",
        metavar="NAME",
        group="Data",
    )
    header: bool | None = setting(
        None, "Whether the first row of a table names the columns.", default_text="detected", group="Data"
    )
    bleu_tokenizer: Literal["13a", "intl", "zh", "char", "none"] | None = setting(
        None,
        "Tokenizer of sacrebleu.",
        default_text="zh for Chinese, char for other texts split into characters, else 13a",
        group="Data",
    )
    target_splitter: TargetSplitter | None = setting(
        None, "How target texts are split into words.", default_text="by their script", group="Text"
    )
    min_count: int = setting(2, "Minimum frequency of a target word; rarer ones are unknown.", min=1, group="Text")
    max_vocabulary: int = setting(50_000, "Maximum number of target words.", min=1, group="Text")
    copy_unknown: bool = setting(
        True, "Replace unknown words by the source word with the highest attention weight.", group="Decoding"
    )
    target_encoder: str | None = setting(
        None,
        "Initialize target word vectors from this model of their language: word vectors, or the first layer of an ELMo.",
        metavar="MODEL",
        group="Encoders",
    )
    hidden_size: int = setting(
        256, "Units of the source LSTM in each direction; the target LSTM has twice as many.", min=1, group="Training"
    )
    layers: int = setting(1, "LSTM layers of the source.", min=1, option="network_layers", group="Training")
    decoder_layers: int = setting(1, "LSTM layers of the target.", min=1, group="Training")
    target_dim: int = setting(256, "Size of target word vectors.", min=1, group="Training")
    attention: AttentionScore = setting("general", "Attention: general (Luong) or additive (Bahdanau).", group="Training")
    input_feeding: bool = setting(False, "Feed the attention vector into the next step; slower to train.", group="Training")
    tied: bool = setting(True, "Tie the output layer to the target word vectors.", group="Training")
    label_smoothing: float = setting(0.1, "Label smoothing.", min=0, below=1, group="Training")
    dropout: float = setting(0.4, "Dropout probability.", min=0, below=1, group="Training")
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        yield from self.between_problems(self.layers)
