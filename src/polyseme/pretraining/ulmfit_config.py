"""How the AWD-LSTM of ULMFiT is trained, and how one is adapted to the text of a task: the settings. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from polyseme.base.config import setting
from polyseme.base.errors import arg
from polyseme.encoders.config import UlmfitConfig
from polyseme.nn.config import AwdDropout
from polyseme.pretraining.elmo_config import NEW_WORDS
from polyseme.pretraining.method import SKIP_NORM, NeuralMethod
from polyseme.pretraining.nnlm_config import LeftToRightPretraining
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

if TYPE_CHECKING:
    from polyseme.base.run import Run

ROWS, ROWS_CUDA = 40, 256
"""Rows per batch: as published for a million words, and those that fill a GPU."""
WORDS_PER_ROW = 100_000
"""On a GPU: the words of text for one row more, so that an epoch keeps more than a thousand steps."""


def default_optim(learning_rate: float = 3e-3, weight_decay: float = 0.1) -> OptimConfig:
    """Return AdamW with a short momentum, as in fast.ai's recipe for these networks."""
    return OptimConfig(
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        betas=(0.8, 0.99),
        warmup=0.1,
        decay="cosine",
        clip_norm=0.25,
        skip_norm=SKIP_NORM,
    )


def slanted_optim(learning_rate: float = 1e-3) -> OptimConfig:
    """Return the optimizer of pre-training under the slanted triangular schedule; its rate is that of the top layer."""
    return default_optim(learning_rate).replace(decay="slanted")


@dataclass(frozen=True, kw_only=True)
class UlmfitTraining(NeuralMethod):
    """Settings that pre-training and adaptation share; dropout as published for the Penn Treebank."""

    batch_setting: ClassVar[str | None] = "batch_size"

    negatives: int | None = setting(
        None,
        "Train with a sampled softmax of this many words, for large vocabularies.",
        min=1,
        metavar="N",
        default_text="the full softmax",
        group="Model",
    )
    dropout: AwdDropout = setting(help="Dropout probabilities.", factory=AwdDropout, option=False)
    dropout_multiplier: float = setting(
        1.0,
        "Multiply all published dropout probabilities by this: less for much text, more for little.",
        min=0,
        group="Training",
    )
    activation_regularization: float = setting(
        2.0, "Weight of activation regularization (AR): penalty on large activations.", min=0, group="Training"
    )
    temporal_regularization: float = setting(
        1.0,
        "Weight of temporal activation regularization (TAR): penalty on activations that change from word to word.",
        min=0,
        group="Training",
    )
    batch_size: int | None = setting(
        None,
        "Rows per batch.",
        min=1,
        default_text=f"{ROWS}; fewer for little text; on a GPU up to {ROWS_CUDA} for much",
        group="Training",
    )
    bptt: int = setting(70, "Mean length of truncated backpropagation through time, in words.", min=1, group="Training")

    def problems(self) -> Iterable[str]:
        largest = max(self.dropout.to_dict().values())
        if self.dropout_multiplier * largest >= 1:
            yield (
                f"{arg('dropout_multiplier')} is {self.dropout_multiplier:g}; allowed: below {1 / largest:g}, because the "
                f"largest dropout probability is {largest:g}"
            )

    def resolved_batch_size(self, words: int, run: Run) -> int:
        """Return the rows of a batch for a text of so many words."""
        rows = min(ROWS_CUDA, max(ROWS, words // WORDS_PER_ROW)) if run.device.type == "cuda" else ROWS
        return self.batch_size or max(1, min(rows, words // (2 * self.bptt * run.world_size)))

    @property
    def scaled_dropout(self) -> AwdDropout:
        """The dropout probabilities, multiplied."""
        return self.dropout.times(self.dropout_multiplier)

    def resume_settings(self) -> dict[str, Any]:
        values = super().resume_settings() | {"dropout": self.scaled_dropout.to_dict()}
        del values["dropout_multiplier"]
        return values


@dataclass(frozen=True, kw_only=True)
class UlmfitPretraining(UlmfitTraining, LeftToRightPretraining):
    """Train the language model of ULMFiT, an AWD-LSTM (Merity et al. 2017); sizes as published for the Penn Treebank."""

    name: ClassVar[str] = "ulmfit"
    job: ClassVar[str] = "polyseme.pretraining.ulmfit:UlmfitJob"

    dim: int = setting(400, "Size of a word vector, and of the last layer.", min=1, group="Model")
    hidden_size: int = setting(1150, "Units of the other layers.", min=1, group="Model")
    layers: int = setting(3, "LSTM layers.", min=1, group="Model")
    backward: bool = setting(False, "Read the text from right to left.", group="Model")
    train: TrainConfig = setting(
        help="Budget, optimizer and training loop.", factory=lambda: TrainConfig(epochs=50.0, optim=default_optim())
    )

    def resolve_defaults(self, words: int, run: Run) -> Self:
        return self.replace(batch_size=self.resolved_batch_size(words, run))

    def encoder_config(self, words: int) -> UlmfitConfig:
        """Return the config of the encoder for a vocabulary of so many words."""
        return UlmfitConfig(size=words, dim=self.dim, hidden_size=self.hidden_size, layers=self.layers, backward=self.backward)


@dataclass(frozen=True, kw_only=True)
class UlmfitAdaptation(UlmfitTraining):
    """Continue the training of ULMFiT's language model on the text of a task (Howard and Ruder 2018)."""

    name: ClassVar[str] = "adapt"
    model_name: ClassVar[str] = "ULMFiT"
    job: ClassVar[str] = "polyseme.pretraining.adapt:UlmfitAdaptationJob"

    new_words: int | None = setting(
        None,
        "Frequent words of the text to add to the vocabulary, at most.",
        min=0,
        metavar="N",
        default_text=f"{NEW_WORDS:,}; 0 for an adaptive softmax",
        group="Model",
    )
    min_count: int = setting(2, "Add words that occur at least this often.", min=1, metavar="N", group="Model")
    layer_decay: float = setting(
        2.6,
        "Divide the learning rate by this from each layer to the one below (discriminative fine-tuning).",
        min=1,
        group="Training",
    )
    freeze: tuple[str, ...] = setting(
        (), "Layer groups to freeze: table, layer1, layer2 ..., output.", metavar="GROUP", group="Training"
    )
    train: TrainConfig = setting(
        help="Budget, optimizer and training loop.", factory=lambda: TrainConfig(epochs=3.0, optim=slanted_optim())
    )
