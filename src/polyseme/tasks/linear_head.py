"""The network "linear": an encoder and a head, fine-tuned as ULMFiT, GPT and BERT were published.

No word table, no characters, no LSTM of the task's own: the encoder reads an example as one sequence
(`polyseme.encoders.sequence`) and gives one vector, from which a head computes scores. Three heads, each of its paper:

linear    one layer (Radford et al. 2018)
tanh      a tanh layer before it (Devlin et al. 2019), initialized from the pre-trained pooler where the model has one, and
          then trained at the encoder's learning rate
hidden    two layers with batch norm, with 50 units between them (Howard and Ruder 2018)

The encoder's language-model loss on the same texts can be added (`lm_weight`, 0.5 in GPT's paper). Special tokens that a
model's tokenizer lacks (GPT's delimiter) are weights of the head, so that the model's folder stays as it is. A frozen encoder
gives features that never change, but computes them anew in every step, and the special tokens stay as initialized.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import arg
from polyseme.encoders.base import Encoder
from polyseme.nn.maxout import BatchNorm
from polyseme.tasks.base import Task
from polyseme.tasks.config import LINEAR, LinearHeadConfig, SequenceTaskConfig, TaskConfig
from polyseme.tasks.data import ExampleBatch
from polyseme.tasks.features import Features
from polyseme.training.base import LrMultiplier

_INITIAL_STD = 0.02  # of new weights above a pre-trained network, as in both papers


@dataclass(frozen=True)
class SequenceLayout:
    """How the texts of an example become one sequence."""

    texts: int = 1
    both_orders: bool = False
    """Read two texts in both orders, and add their vectors."""
    keep_end: bool = False
    """Cut a first text that is too long at its beginning."""


@dataclass(frozen=True)
class SequenceInputs:
    """A batch of sequences on the device."""

    orders: list[Any]
    """Inputs of the encoder; with both orders of two texts, twice."""
    lengths: Tensor
    """(examples,): words of each, for the log; on the CPU."""


@dataclass(frozen=True)
class SequenceVectors:
    """What the encoder computes of them."""

    vectors: Tensor
    """(examples, dim)."""
    lm_loss: Tensor | None
    """The language-model loss, where it is trained."""


class LinearHead(nn.Module):
    """Scores (examples, outputs) of sequences; `hidden_size`: units of a head with a hidden layer."""

    def __init__(
        self,
        config: LinearHeadConfig,
        features: Features,
        outputs: int,
        *,
        layout: SequenceLayout,
        hidden_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        encoder = only_encoder(features)
        if config.lm_weight and not encoder.predicts_next_word:
            what = f"needs a left-to-right language model, such as GPT or ULMFiT; this encoder is {encoder.kind}"
            raise ConfigError(f"{arg('lm_weight', config.lm_weight)} {what}")
        self.config, self.layout, self.tuned = config, layout, bool(features.tuned)
        self._encoder = [encoder]  # in a list: its weights are the features'
        if self.tuned:
            encoder.scale_dropout(config.encoder_dropout)
        tokens = encoder.sequence_tokens()
        self.marks = None if tokens is None else nn.Parameter(tokens, requires_grad=self.tuned)  # special tokens
        kind = config.head or encoder.default_head
        dim = encoder.sequence_dim(layout.texts)
        self.dense = _dense(encoder, dim) if kind == "tanh" else None
        self.head = _hidden(dim, hidden_size, outputs, dropout) if kind == "hidden" else _linear(dim, outputs, dropout)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the sequences."""
        return self._encoder[0]

    def prepare(self, examples: Sequence[Sequence[list[str]]]) -> SequenceInputs:
        """Prepare examples of one text each, or of two each."""
        orders = [examples, [list(reversed(texts)) for texts in examples]] if self.layout.both_orders else [examples]
        lengths = torch.tensor([sum(map(len, texts)) for texts in examples])
        return SequenceInputs([self.encoder.prepare_sequence(each, keep_end=self.layout.keep_end) for each in orders], lengths)

    def encode(self, inputs: SequenceInputs, *, training: bool) -> SequenceVectors:
        """Return the vectors of examples, those of both orders added; in training the language-model loss, too."""
        predict = training and self.config.lm_weight > 0
        with nullcontext() if self.tuned else torch.no_grad():
            outputs = [self.encoder.encode_sequence(each, self.marks, predict=predict) for each in inputs.orders]
        vectors = torch.stack([each.vectors.float() for each in outputs]).sum(0)
        losses = [each.lm_loss for each in outputs if each.lm_loss is not None]
        return SequenceVectors(vectors, torch.stack(losses).mean() if losses else None)

    def forward(self, sequences: SequenceVectors) -> Tensor:
        vectors = sequences.vectors if self.dense is None else torch.tanh(self.dense(sequences.vectors))
        scores: Tensor = self.head(vectors)
        return scores

    def lr_multipliers(self, prefix: str, multiplier: float) -> list[LrMultiplier]:
        """Return the rules for weights that were pre-trained: they train at the encoder's learning rate."""
        pretrained = {"dense.": self.dense is not None and self.encoder.pooler() is not None, "marks": self.marks is not None}
        return [LrMultiplier(prefix + name, multiplier) for name, is_so in pretrained.items() if is_so and self.tuned]


class SequenceTask(Task):
    """A task that can have that network."""

    config: SequenceTaskConfig
    network: Any

    @property
    def reads_words(self) -> bool:
        return not self.config.is_linear

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[Any]) -> TaskConfig:
        return config.replace(features=config.features.for_linear_head()) if config.is_linear else config

    def _inputs(self, batch: ExampleBatch) -> list[Any]:
        if self.reads_words:
            return super()._inputs(batch)
        return [self.network.prepare(list(zip(*batch.texts, strict=True)))]

    def vectors(self, inputs: Sequence[Any], *, training: bool = False) -> list[Any]:
        if self.reads_words:
            return super().vectors(inputs, training=training)
        return [self.network.encode(each, training=training) for each in inputs]

    def auxiliary_losses(self, vectors: Sequence[Any]) -> dict[str, Tensor]:
        if self.reads_words or not self.config.linear_head.lm_weight:
            return {}
        (sequences,) = vectors
        return {"prediction": self.config.linear_head.lm_weight * sequences.lm_loss}

    def lr_multipliers(self) -> list[LrMultiplier]:
        if self.reads_words:
            return super().lr_multipliers()
        return super().lr_multipliers() + self.network.lr_multipliers("network.", self.config.features.encoder_lr_multiplier)


def only_encoder(features: Features) -> Encoder:
    """Return the one contextual encoder of a linear network."""
    if len(features.contextual) != 1:
        given = ", ".join(encoder.kind for encoder in features.contextual) or "none"
        raise ConfigError(f"{arg('network', LINEAR)} needs exactly one contextual encoder; got {given}")
    (encoder,) = features.contextual
    if not encoder.layer_groups():
        raise ConfigError(f"{arg('network', LINEAR)} needs a neural encoder; {encoder.kind} is none: choose another network")
    return encoder


def _dense(encoder: Encoder, dim: int) -> nn.Linear:
    """The tanh layer: pre-trained where the encoder has one, else new."""
    layer, pretrained = new_layer(dim, dim), encoder.pooler()
    if pretrained is not None:
        with torch.no_grad():
            layer.weight.copy_(pretrained.weight)
            layer.bias.copy_(pretrained.bias)
    return layer


def _linear(inputs: int, outputs: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Dropout(dropout), new_layer(inputs, outputs))


def _hidden(inputs: int, units: int, outputs: int, dropout: float) -> nn.Sequential:
    """Dropout 0.4 and 0.1 are published for the two layers; here the second is a quarter of the first."""
    first = (BatchNorm(inputs), nn.Dropout(dropout), nn.Linear(inputs, units), nn.ReLU())
    return nn.Sequential(*first, BatchNorm(units), nn.Dropout(dropout / 4), nn.Linear(units, outputs))


def new_layer(inputs: int, outputs: int) -> nn.Linear:
    """Return a new linear layer for a pre-trained network."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=_INITIAL_STD)
    nn.init.zeros_(layer.bias)
    return layer
