"""Teach an AWD-LSTM its language (Merity et al. 2017), the language model that ULMFiT begins from.

Text in its own order, batches of drawn length, state carried from each to the next, dropout of everything and a loss on the
activations: all as published. Published is plain gradient descent with averages of the weights from the first epoch without a
gain on (NT-ASGD), for hundreds of epochs; here is AdamW, whose rate falls to zero, for fewer. The published rescaling of the
rate by a batch's length is left out: the loss is a mean, and Adam's steps hardly depend on its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from polyseme.base.config import Config, ConfigError
from polyseme.base.run import Run
from polyseme.encoders.config import UlmfitConfig
from polyseme.encoders.lr_multipliers import lr_multipliers
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.awd_lstm import AwdLstmOutput, AwdLstmState, activation_loss
from polyseme.nn.config import AwdDropout
from polyseme.pretraining.elmo_training import SKIP_NORM
from polyseme.pretraining.left_to_right import Ids, LeftToRightObjective, LeftToRightPretraining
from polyseme.text.batching.bptt import BpttBatch, BpttBatches, TokenStream
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter
from polyseme.training.base import Loss, LrMultiplier
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

DEV_ROWS = 10  # of a batch in validation, as published


@dataclass(frozen=True)
class BpttTensors:
    """A batch on the model's device."""

    rows: Tensor
    """(rows, steps + 1): rows of the vocabulary; all but the last are read, all but the first predicted."""
    fresh: bool
    """Whether nothing was read before."""
    words: int


class UlmfitObjective(LeftToRightObjective):
    """The language model over passages of the text."""

    model: Ulmfit

    def __init__(
        self,
        model: Ulmfit,
        ids: Ids,
        *,
        dropout: AwdDropout,
        activation_regularization: float = 2.0,
        temporal_regularization: float = 1.0,
        negatives: int | None = None,
    ) -> None:
        super().__init__(model, ids, negatives=negatives)
        self.layer_decay = 1.0
        """Each layer moves so many times slower than the one above."""
        model.set_dropout(dropout)
        self._activation, self._change = activation_regularization, temporal_regularization
        self._carried: AwdLstmState | None = None

    def prepare(self, batch: BpttBatch) -> BpttTensors:
        """Type ids -> tensors on the model's device."""
        return BpttTensors(self.move(self.rows(batch.types, ends=batch.ends)), batch.fresh, batch.words)

    def loss(self, batch: BpttTensors) -> Loss:
        """The mean loss of a prediction, and that of the activations."""
        reading = self._read(batch)
        found = self.mean_loss(reading.top.flatten(0, 1), batch.rows[:, 1:].flatten(), batch.words)
        more = activation_loss(reading, size=self._activation, change=self._change)
        found.components = {"prediction": found.total.detach(), "activation": more.detach()}
        found.total = found.total + more
        return found

    def predictions(self, batch: BpttBatch) -> tuple[Tensor, Tensor]:
        tensors = self.prepare(batch)
        return self._read(tensors).top.flatten(0, 1), tensors.rows[:, 1:].flatten()

    def _read(self, batch: BpttTensors) -> AwdLstmOutput:
        """Read on from the batch before; the loop puts back what evaluation carried."""
        state = None if batch.fresh else self._carried
        reading = self.model.read(batch.rows[:, :-1], state or self.model.lstm.zero_state(len(batch.rows)))
        self._carried = [(hidden.detach(), cell.detach()) for hidden, cell in reading.end]
        return reading

    def lr_multipliers(self) -> list[LrMultiplier]:
        return [] if self.layer_decay == 1.0 else lr_multipliers(self.model, "model.", decay=self.layer_decay)

    def carried_state(self) -> dict[str, Tensor]:
        """The state of every row."""
        found: dict[str, Tensor] = {}
        for level, (hidden, cell) in enumerate(self._carried or []):
            found |= {f"hidden{level}": hidden, f"cell{level}": cell}
        return found

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Put it back."""
        device, levels = self.model.device, range(len(carried) // 2)
        state = [(carried[f"hidden{n}"].to(device).clone(), carried[f"cell{n}"].to(device).clone()) for n in levels]
        self._carried = state or None


@dataclass(frozen=True, kw_only=True)
class UlmfitTraining(Config):
    """How such a model is taught, new or not; dropout as published for the Penn Treebank."""

    negatives: int | None = None
    """Train by a sample of so many words of the vocabulary, for large ones; None: by all of them."""
    dropout: AwdDropout = field(default_factory=AwdDropout)
    """What is dropped in training."""
    activation_regularization: float = 2.0
    """How much large activations of the last layer cost (AR)."""
    temporal_regularization: float = 1.0
    """How much their change from word to word costs (TAR)."""
    batch_size: int | None = None
    """Passages that are read side by side; None: 40, and fewer for little text."""
    bptt: int = 70
    """Words of a row in a batch, about, through which gradients go."""

    def training_problems(self) -> list[str]:
        """What cannot be."""
        problems = []
        for name in ("batch_size", "bptt"):
            value = getattr(self, name)
            if value is not None and value < 1:
                problems.append(f"{name} is {value}; it must be at least 1")
        for name in ("activation_regularization", "temporal_regularization"):
            if not getattr(self, name) >= 0:
                problems.append(f"{name} is {getattr(self, name)}; it must be at least 0")
        return problems

    def default_batch_size(self, words: int, run: Run) -> int:
        """Passages for a text of so many words."""
        return self.batch_size or max(1, min(40, words // (2 * self.bptt * run.world_size)))

    def learner(self, model: Ulmfit, ids: Ids) -> UlmfitObjective:
        return UlmfitObjective(
            model,
            ids,
            dropout=self.dropout,
            activation_regularization=self.activation_regularization,
            temporal_regularization=self.temporal_regularization,
            negatives=self.negatives,
        )

    def batches(self, shards: Shards, sentences: range, run: Run) -> BpttBatches:
        assert self.batch_size is not None
        share = {"seed": run.seed, "rank": run.rank, "world_size": run.world_size}
        return BpttBatches(shards, sentences, batch_size=self.batch_size, bptt=self.bptt, **share)

    def validation(self, shards: Shards, held_out: range) -> list[BpttBatch]:
        return list(TokenStream(shards, held_out).in_order(DEV_ROWS, self.bptt))


@dataclass(frozen=True, kw_only=True)
class UlmfitPretraining(UlmfitTraining, LeftToRightPretraining):
    """What is taught, and how; sizes as published for the Penn Treebank."""

    dim: int = 400
    """Size of a word's vector, and of the last layer."""
    hidden_size: int = 1150
    """Units of the other layers."""
    layers: int = 3
    """LSTM layers."""
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=50.0, optim=optim()))
    """The budget and the loop."""

    def __post_init__(self) -> None:
        problems = self.problems() + self.training_problems()
        try:
            self._model(1)
        except ConfigError as error:
            problems.append(str(error))
        if problems:
            raise ConfigError("; ".join(problems))

    def _model(self, words: int) -> UlmfitConfig:
        return UlmfitConfig(size=words, dim=self.dim, hidden_size=self.hidden_size, layers=self.layers)

    def resolve_defaults(self, words: int, run: Run) -> UlmfitPretraining:
        return self.replace(batch_size=self.default_batch_size(words, run))

    def build(self, vocabulary: Vocabulary, splitter: Splitter) -> Ulmfit:
        return Ulmfit(self._model(len(vocabulary)), vocabulary=vocabulary, splitter=splitter)


def optim(learning_rate: float = 3e-3, weight_decay: float = 0.1) -> OptimConfig:
    """AdamW with a short memory of the gradients' direction, as fast.ai's recipe for these networks has it."""
    return OptimConfig(
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        betas=(0.8, 0.99),
        warmup=0.1,
        decay="cosine",
        clip_norm=0.25,
        skip_norm=SKIP_NORM,
    )
