"""How left-to-right language models are trained, and the settings of the NNLM. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from polyseme.base.config import setting
from polyseme.encoders.config import NnlmConfig
from polyseme.pretraining.defaults import FULL_ON_CPU, NEGATIVES_ON_CPU
from polyseme.pretraining.method import MIN_VOCABULARY, NeuralMethod

if TYPE_CHECKING:
    from polyseme.base.run import Run


@dataclass(frozen=True, kw_only=True)
class LeftToRightPretraining(NeuralMethod):
    """Settings that the NNLM and ULMFiT share."""

    batch_setting: ClassVar[str | None] = "batch_words"

    vocabulary_size: int | None = setting(
        None,
        "Most frequent words, special tokens included. All others are <unk>.",
        min=MIN_VOCABULARY,
        default_text="all words; fewer for a budget in minutes",
        group="Model",
    )
    min_count: int = setting(1, "Rarer words are <unk>.", min=1, group="Model")
    negatives: int | None = setting(
        None,
        "Train with a sampled softmax of this many words, for large vocabularies.",
        min=1,
        metavar="N",
        default_text="the full softmax",
        group="Model",
    )

    def resolve_defaults(self, words: int, run: Run) -> Self:
        """Return a copy without open settings, for a text of so many words and a device."""
        return self

    def for_minutes(self, vocabulary: int, run: Run) -> Self:
        """Return a copy with the vocabulary that fits a text, and the output layer that fits the device, if time is limited."""
        if self.train.minutes is None or self.vocabulary_size is not None or self.min_count != 1:
            return self
        sampled = self.negatives is None and run.device.type == "cpu" and vocabulary > FULL_ON_CPU
        return self.replace(vocabulary_size=vocabulary, negatives=NEGATIVES_ON_CPU if sampled else self.negatives)

    def resume_settings(self) -> dict[str, Any]:
        return {"method": self.name, **super().resume_settings()}


@dataclass(frozen=True, kw_only=True)
class NnlmPretraining(LeftToRightPretraining):
    """Train a neural probabilistic language model (Bengio et al. 2003): each word from the few before it."""

    name: ClassVar[str] = "nnlm"
    job: ClassVar[str] = "polyseme.pretraining.nnlm:NnlmJob"

    order: int = setting(
        5, "Order of the model: each word is predicted from the order - 1 words before it.", min=2, group="Model"
    )
    dim: int = setting(100, "Size of a word vector.", min=1, group="Model")
    hidden_size: int = setting(500, "Units of the tanh layer.", min=1, group="Model")
    direct_connections: bool = setting(False, "Connect the word vectors to the output layer directly, too.", group="Model")
    dropout: float = setting(
        0.25, "Dropout probability, on the word vectors and on the tanh layer.", min=0, below=1, group="Training"
    )
    batch_words: int | None = setting(
        None, "Words per batch.", min=1, default_text="1,024; less for little text", group="Training"
    )

    def resolve_defaults(self, words: int, run: Run) -> Self:
        return self.replace(batch_words=self.batch_words or min(1024, max(128, words // 100)))

    def encoder_config(self, words: int) -> NnlmConfig:
        """Return the config of the encoder for a vocabulary of so many words."""
        return NnlmConfig(
            size=words,
            order=self.order,
            dim=self.dim,
            hidden_size=self.hidden_size,
            direct_connections=self.direct_connections,
        )
