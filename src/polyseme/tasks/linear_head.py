"""Nothing but an encoder and a head: fine-tuning as ULMFiT, GPT and BERT were published (`network="linear"`).

No table of words, no characters, no LSTM of the task's own: the encoder reads the whole example in its own way
(`polyseme.encoders.sequence`) and gives one vector, from which a head makes scores. Three heads, each of its paper:

linear    one layer (Radford et al. 2018)
tanh      a layer with tanh before it (Devlin et al. 2019), which begins as the one that the model was pre-trained with, and
          moves at the encoder's rate, where the model has one
hidden    two layers with batch norm, with 50 units between them (Howard and Ruder 2018)

The encoder's own language-model loss on the same texts can be learned beside the task (`lm_weight`, 0.5 in GPT's paper). Marks
that a model's tokenizer lacks (GPT's delimiter) are vectors of the network here, so that the model's folder stays as it is.
Frozen, the encoder gives features that stay, but reads them anew in every step, and the marks stay as they begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.encoders.base import Encoder
from polyseme.nn.maxout import BatchNorm
from polyseme.tasks.base import Task
from polyseme.tasks.config import LinearHeadConfig, SequenceTaskConfig, TaskConfig
from polyseme.tasks.data import ExampleBatch
from polyseme.tasks.features import Features
from polyseme.training.base import LrMultiplier

_FIRST_SPREAD = 0.02  # of new weights above a pre-trained network, as in both papers


@dataclass(frozen=True)
class SequenceInputs:
    """A batch of whole examples, ready for the device."""

    orders: list[Any]
    """What the encoder eats; with both orders of two texts, twice."""
    lengths: Tensor
    """(examples,): words of each, for the log; on the CPU."""


@dataclass(frozen=True)
class SequenceVectors:
    """What the encoder made of them."""

    vectors: Tensor
    """(examples, dim)."""
    prediction: Tensor | None
    """The language-model loss, where it is learned."""


class LinearHead(nn.Module):
    """Whole examples of so many texts -> scores (examples, outputs); `hidden`: units of a head that has a hidden layer;
    `keep_end`: a first text that is too long loses its beginning."""

    def __init__(
        self,
        config: LinearHeadConfig,
        features: Features,
        outputs: int,
        *,
        texts: int,
        hidden: int,
        dropout: float,
        both_orders: bool = False,
        keep_end: bool = False,
    ) -> None:
        super().__init__()
        encoder = only_encoder(features)
        if config.lm_weight and not encoder.predicts_next_word:
            given = f"lm_weight is {config.lm_weight}, but this {encoder.kind} tells no next words"
            raise ConfigError(f"{given}; it is for a gpt with its output layer, and for a ulmfit: leave it out")
        self.config, self.both_orders, self.keep_end, self.tuned = config, both_orders, keep_end, bool(features.tuned)
        self._encoder = [encoder]  # in a list: its weights are the features'
        if self.tuned:
            encoder.scale_dropout(config.encoder_dropout)
        marks = encoder.sequence_tokens()
        self.marks = None if marks is None else nn.Parameter(marks, requires_grad=self.tuned)
        kind = config.head or encoder.default_head
        dim = encoder.sequence_dim(texts)
        self.dense = _dense(encoder, dim) if kind == "tanh" else None
        self.head = _hidden(dim, hidden, outputs, dropout) if kind == "hidden" else _linear(dim, outputs, dropout)

    @property
    def encoder(self) -> Encoder:
        """What reads the examples."""
        return self._encoder[0]

    def prepare(self, examples: Sequence[Sequence[list[str]]]) -> SequenceInputs:
        """ExampleBatch of one text each, or of two each."""
        orders = [examples, [list(reversed(texts)) for texts in examples]] if self.both_orders else [examples]
        lengths = torch.tensor([sum(map(len, texts)) for texts in examples])
        return SequenceInputs([self.encoder.prepare_sequence(each, keep_end=self.keep_end) for each in orders], lengths)

    def read(self, inputs: SequenceInputs, *, learning: bool) -> SequenceVectors:
        """Their vectors, those of both orders added; where it learns, the language-model loss, too."""
        predict = learning and self.config.lm_weight > 0
        with nullcontext() if self.tuned else torch.no_grad():
            found = [self.encoder.encode_sequence(each, self.marks, predict=predict) for each in inputs.orders]
        vectors = torch.stack([each.vectors.float() for each in found]).sum(0)
        losses = [each.lm_loss for each in found if each.lm_loss is not None]
        return SequenceVectors(vectors, torch.stack(losses).mean() if losses else None)

    def forward(self, whole: SequenceVectors) -> Tensor:
        vectors = whole.vectors if self.dense is None else torch.tanh(self.dense(whole.vectors))
        scores: Tensor = self.head(vectors)
        return scores

    def lr_multipliers(self, prefix: str, rate: float) -> list[LrMultiplier]:
        """What was learned before goes on at the encoder's rate."""
        learned = {"dense.": self.dense is not None and self.encoder.pooler() is not None, "marks": self.marks is not None}
        return [LrMultiplier(prefix + name, rate) for name, is_so in learned.items() if is_so and self.tuned]


class SequenceTask(Task):
    """A task that can have that network; its config has a field `network`, or no other."""

    config: SequenceTaskConfig
    network: Any

    @property
    def reads_words(self) -> bool:
        return not self.config.is_linear

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[Any]) -> TaskConfig:
        assert isinstance(config, SequenceTaskConfig)
        return config.replace(features=config.features.for_linear_head()) if config.is_linear else config

    def _inputs(self, batch: ExampleBatch) -> list[Any]:
        if self.reads_words:
            return super()._inputs(batch)
        return [self.network.prepare(list(zip(*batch.texts, strict=True)))]

    def vectors(self, inputs: Sequence[Any], *, learning: bool = False) -> list[Any]:
        if self.reads_words:
            return super().vectors(inputs, learning=learning)
        return [self.network.read(each, learning=learning) for each in inputs]

    def auxiliary_losses(self, vectors: Sequence[Any]) -> dict[str, Tensor]:
        if self.reads_words or not self.config.linear_head.lm_weight:
            return {}
        (whole,) = vectors
        return {"prediction": self.config.linear_head.lm_weight * whole.prediction}

    def lr_multipliers(self) -> list[LrMultiplier]:
        return super().lr_multipliers() + (
            [] if self.reads_words else self.network.lr_multipliers("network.", self.config.features.encoder_lr_multiplier)
        )


def only_encoder(features: Features) -> Encoder:
    """The one encoder that a network has which reads with nothing else."""
    if len(features.contextual) != 1:
        given = ", ".join(encoder.kind for encoder in features.contextual) or "none"
        raise ConfigError(f"network is 'linear', an encoder and a head; give one encoder that knows sentences, not {given}")
    (encoder,) = features.contextual
    if not encoder.layer_groups():
        raise ConfigError(f"network is 'linear', but an encoder of kind {encoder.kind} is no network: give another network")
    return encoder


def _dense(encoder: Encoder, dim: int) -> nn.Linear:
    """The layer with tanh: as it was pre-trained, else new."""
    layer, learned = new_layer(dim, dim), encoder.pooler()
    if learned is not None:
        with torch.no_grad():
            layer.weight.copy_(learned.weight)
            layer.bias.copy_(learned.bias)
    return layer


def _linear(inputs: int, outputs: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(dropout), new_layer(inputs, outputs))


def _hidden(inputs: int, units: int, outputs: int, dropout: float) -> nn.Sequential:
    """Published are 0.4 and 0.1 for the two dropouts; the second is a quarter of the first here."""
    first = (BatchNorm(inputs), nn.Dropout(dropout), nn.Linear(inputs, units), nn.ReLU())
    return nn.Sequential(*first, BatchNorm(units), nn.Dropout(dropout / 4), nn.Linear(units, outputs))


def new_layer(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer above a pre-trained network."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=_FIRST_SPREAD)
    nn.init.zeros_(layer.bias)
    return layer
