"""How a BERT and a GPT are trained: the settings. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg
from polyseme.pretraining.method import NeuralMethod
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

if TYPE_CHECKING:
    from polyseme.base.run import Run

SIZES = {"tiny": (2, 128), "mini": (4, 256), "small": (4, 512)}
"""Layers and hidden size, as in Turc et al. 2019; one attention head for each 64 units."""
BATCH_CPU, BATCH_CUDA = 2048, 32768  # subwords
MIN_BPE_SIZE = 257
"""256 bytes and a special token."""


def default_optim(learning_rate: float = 5e-4) -> OptimConfig:
    """Return AdamW with a long warm-up, without which BERT only learns the frequencies of subwords."""
    return OptimConfig(learning_rate=learning_rate, warmup=0.1)


@dataclass(frozen=True, kw_only=True)
class SubwordPretraining(NeuralMethod):
    """Settings that BERT and GPT share."""

    batch_setting: ClassVar[str | None] = "batch_subwords"

    size: Literal["tiny", "mini", "small"] = setting(
        "tiny", "Size of the network: 2 layers of 128 units, 4 of 256, or 4 of 512.", group="Model"
    )
    vocabulary_size: int = setting(
        8000,
        "Subwords of the vocabulary, special tokens included. All characters of the text are among them.",
        min=10,
        group="Model",
    )
    max_length: int = setting(
        128, "Subwords that are read together, special tokens included: the positions of the network.", min=8, group="Model"
    )
    dropout: float = setting(0.1, "Dropout probability.", min=0, below=1, group="Training")
    batch_subwords: int | None = setting(
        None,
        "Subwords per batch, padding included.",
        min=8,
        default_text=f"{BATCH_CPU:,}; {BATCH_CUDA:,} on a GPU",
        group="Training",
    )
    train: TrainConfig = setting(
        help="Budget, optimizer and training loop.", factory=lambda: TrainConfig(epochs=10.0, optim=default_optim())
    )

    def resolve_defaults(self, run: Run) -> Self:
        """Return a copy without open settings, for a device."""
        return self.replace(batch_subwords=self.batch_subwords or (BATCH_CUDA if run.device.type == "cuda" else BATCH_CPU))


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """Which subwords are masked, and how; the names are those of transformers' data collator."""

    mlm_probability: float = setting(
        0.15, "Fraction of the subwords to predict, special tokens not counted.", above=0, below=1, group="Masking"
    )
    mask_replace_prob: float = setting(0.8, "Of these, the fraction replaced by [MASK].", min=0, max=1, group="Masking")
    random_replace_prob: float = setting(
        0.1, "Of these, the fraction replaced by a random subword; the rest is not changed.", min=0, max=1, group="Masking"
    )
    whole_word_mask: bool = setting(False, "Mask all subwords of a word, or none.", group="Masking")
    static_masking: bool = setting(
        False, "Sample pairs and masks once, and not in each epoch (dynamic masking, Liu et al. 2019).", group="Masking"
    )

    def problems(self) -> Iterable[str]:
        total = self.mask_replace_prob + self.random_replace_prob
        if total > 1:
            yield f"{arg('mask_replace_prob')} and {arg('random_replace_prob')} sum to {total:g}; allowed: at most 1"


@dataclass(frozen=True, kw_only=True)
class BertPretraining(SubwordPretraining):
    """Train a BERT (Devlin et al. 2019): masked subwords and next sentences.

    Blank lines separate documents; without any, each line is one.

    >>> BertPretraining(size="mini").masking.mlm_probability
    0.15
    """

    name: ClassVar[str] = "bert"
    job: ClassVar[str] = "polyseme.pretraining.bert:BertJob"

    cased: bool = setting(False, "Distinguish upper and lower case, and accents.", group="Model")
    masking: MaskingConfig = setting(help="Which subwords are masked.", factory=MaskingConfig)


@dataclass(frozen=True, kw_only=True)
class GptPretraining(SubwordPretraining):
    """Train a GPT (Radford et al. 2018, 2019): each subword from all before it.

    Blank lines separate documents; without any, each line is one.
    """

    name: ClassVar[str] = "gpt"
    job: ClassVar[str] = "polyseme.pretraining.gpt:GptJob"

    vocabulary_size: int = setting(
        8000,
        "Subwords of the vocabulary, at most; 256 bytes and a special token are among them.",
        min=MIN_BPE_SIZE,
        group="Model",
    )
