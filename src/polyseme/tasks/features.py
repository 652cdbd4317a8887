"""The features of words that a network reads: the task's own embeddings, and the layers of encoders.

Both classic uses of an encoder (Peters et al. 2018). Frozen, its layers are features: computed once, cached on disk, and mixed
by learned weights or concatenated. Fine-tuned, it trains with the task: all of it, its top layer group, or one more group after
another, with lower learning rates below. A mix can enter at the network's input, between its layers (TagLM, Peters et al. 2017)
and at its output, each with weights of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.config import ConfigError
from polyseme.base.errors import arg
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch
from polyseme.encoders.lr_multipliers import lr_multipliers
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.encoders.word_features import WordFeatures
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.mix import Mix
from polyseme.nn.to_device import to_device
from polyseme.tasks.config import FeaturesConfig, Position
from polyseme.tasks.predictions import LayerWeights
from polyseme.tasks.word_embeddings import DistinctWordInputs, WordEmbeddings
from polyseme.text.labelled.text_in_context import document_of, start_in_document
from polyseme.training.base import LrMultiplier

BPTT = 70
"""Words through which the gradients of a fine-tuned ELMo flow, as many as in ULMFiT: over a thousand words they may explode."""


@dataclass(frozen=True)
class TextInputs:
    """A batch of texts on the device."""

    distinct: DistinctWordInputs
    index: Tensor
    """(batch, words): the number of each word among the distinct ones."""
    mask: Tensor
    """(batch, words): True where a word is."""
    lengths: Tensor
    """(batch,): words of each text; on the CPU."""
    frozen: list[Tensor]
    """For each frozen encoder its layers, (layers, batch, words, dim)."""
    tuned: list[Batch]
    """For each fine-tuned encoder its own batch."""


@dataclass(frozen=True)
class TextVectors:
    """What a network reads: (batch, words, dim) each."""

    at_input: Tensor
    between: Tensor | None
    at_output: Tensor | None
    mask: Tensor
    lengths: Tensor
    """On the CPU."""


class Features(nn.Module):
    """Turns texts into vectors of their words, for each position of a network."""

    def __init__(self, config: FeaturesConfig, words: WordEmbeddings, encoders: Sequence[Encoder] = ()) -> None:
        super().__init__()
        if not words.dim and not encoders:
            raise ConfigError("the network has nothing to read: give an encoder, or task embeddings")
        self.config, self.words = config, words
        self.encoders = list(encoders) if config.mode == "frozen" else []  # a list: their weights are not this module's
        self.tuned = nn.ModuleList(encoders if config.mode == "finetune" else [])
        for encoder in self.tuned:
            if not encoder.layer_groups():  # type: ignore[operator]
                raise ConfigError(f"{arg('mode', 'finetune')} does not apply to {encoder.kind}, which has no weights to train")
            encoder.requires_grad_(False)
            weights = dict(encoder.named_parameters())
            # the output layer has no rule, as nothing reads it; what starts at the end of the run or later never trains
            for rule in lr_multipliers(encoder, "", unfreeze=config.unfreeze):  # type: ignore[arg-type]
                weights[rule.prefix].requires_grad_(rule.start < 1)
            for part in encoder.modules():
                if isinstance(part, ElmoLstm):
                    part.bptt = BPTT
        read: list[Encoder] = list(encoders)
        if config.word_features:  # of loaded vectors too, beside their rows for the given words
            read = [WordFeatures(encoder) for encoder in ([words.loaded] if words.loaded is not None else []) + read]
        self.readers = read
        """What computes layers: the encoders, or word features of them."""
        self.mixes = nn.ModuleDict(
            {position: nn.ModuleList(itertools.chain.from_iterable(map(self._mix, read))) for position in config.positions}
            if read
            else {}
        )
        self._mixed = sum(encoder.dim * (encoder.layers if config.layers == "all" else 1) for encoder in read)

    def _mix(self, encoder: Encoder) -> list[Mix]:
        """The mix of an encoder's layers; where layers are concatenated, one for each."""
        config, count = self.config, encoder.layers if self.config.layers == "mix" else 1
        norm = None if config.norm == "none" else config.norm
        mixes = encoder.layers if config.layers == "all" else 1
        return [Mix(count, norm=norm, l2=config.l2, dropout=config.dropout) for _ in range(mixes)]

    @property
    def contextual(self) -> list[Encoder]:
        """All encoders, frozen or fine-tuned."""
        return [*self.encoders, *self.tuned]

    @property
    def frozen(self) -> list[Encoder]:
        """The encoders whose layers never change, so that they can be cached."""
        return [] if self.tuned or not self.config.positions else self.readers

    def width(self, position: Position) -> int:
        """Return the size of the vectors at a position."""
        return (self._mixed if position in self.mixes else 0) + (self.words.dim if position == "input" else 0)

    def _apply(self, fn: Any, recurse: bool = True) -> Features:
        """Move frozen encoders with the module."""
        for encoder in self.encoders:
            encoder._apply(fn)
        return super()._apply(fn, recurse)

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(itertools.chain(self.parameters(), *(encoder.parameters() for encoder in self.encoders))).device

    # ---- texts -> tensors

    def prepare(self, texts: Sequence[Sequence[str]], cached: Sequence[Tensor] | None = None) -> TextInputs:
        """Prepare texts of words for `forward`; `cached`: the layers of the frozen encoders, where they are known."""
        different = dict.fromkeys(word for text in texts for word in text)
        distinct = sorted(different, key=_bytes)  # so the character network need not sort them and wait for the device
        numbers = {word: number for number, word in enumerate(distinct)}
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        index = np.zeros((len(texts), max(int(lengths.max(initial=0)), 1)), dtype=np.int64)
        for row, text in enumerate(texts):
            index[row, : len(text)] = [numbers[word] for word in text]
        mask = np.arange(index.shape[1]) < lengths[:, None]
        device = self.device
        layers = [self._layers(encoder, texts) for encoder in self.frozen] if cached is None else cached
        return TextInputs(
            distinct=self.words.prepare(distinct or [""]).to(device),
            index=to_device(torch.from_numpy(index), device),
            mask=to_device(torch.from_numpy(mask), device),
            lengths=torch.from_numpy(lengths),
            frozen=[to_device(_at_least_one_word(each), device) for each in layers],
            tuned=[encoder.prepare(texts) for encoder in self.readers] if self.tuned else [],
        )

    def _layers(self, encoder: Encoder, texts: Sequence[Sequence[str]]) -> Tensor:
        read = encoder.embed_documents([document_of(text) for text in texts])
        out = np.zeros((encoder.layers, len(texts), max(map(len, texts), default=0), encoder.dim), dtype=np.float32)
        for row, (text, sentences) in enumerate(zip(texts, read, strict=True)):
            begin = start_in_document(text)
            out[:, row, : len(text)] = np.concatenate(sentences, axis=1)[:, begin : begin + len(text)]
        return torch.from_numpy(out)

    # ---- tensors -> vectors

    def forward(self, inputs: TextInputs) -> TextVectors:
        parts: list[Tensor] = []
        if self.words.dim:
            # unlike that of indexing, the gradient of `embedding` is fast for frequent words
            rows = F.embedding(inputs.index, self.words(inputs.distinct))
            parts.append(rows.masked_fill(~inputs.mask.unsqueeze(-1), 0.0))
        layers = [each.float() for each in inputs.frozen]
        tuned = self.readers if self.tuned else []
        layers += [_at_least_one_word(encoder(batch).states) for encoder, batch in zip(tuned, inputs.tuned, strict=True)]
        if self.config.layers == "top":
            layers = [each[-1:] for each in layers]
        elif self.config.layers == "all":
            layers = [each[number : number + 1] for each in layers for number in range(len(each))]
        at: dict[str, Tensor] = {}
        for position, mixes in self.mixes.items():
            mixed = [mix(each, inputs.mask) for mix, each in zip(mixes, layers, strict=True)]  # type: ignore[call-overload]
            at[position] = _joined(mixed)
        parts += [at["input"]] if "input" in at else []
        at_input = _joined(parts) if parts else torch.zeros(*inputs.mask.shape, 0, device=inputs.mask.device)
        return TextVectors(at_input, at.get("between"), at.get("output"), inputs.mask, inputs.lengths)

    def penalty(self) -> Tensor:
        """Return the L2 penalty of all mixes."""
        penalties = [mix.penalty() for mix in self.modules() if isinstance(mix, Mix)]
        return torch.stack(penalties).sum() if penalties else torch.zeros((), device=self.device)

    def layer_weights(self) -> LayerWeights:
        """Return the softmax weights of each learned mix; one number for a layer that is used alone is not shown."""
        weights = {}
        for position, mixes in self.mixes.items():
            for number, (encoder, mix) in enumerate(zip(self.readers, mixes, strict=False), 1):  # type: ignore[call-overload]
                if self.config.layers == "mix":
                    values = torch.softmax(mix.weights.detach(), dim=0).tolist()
                    weights[f"{position}, {encoder.kind} {number}"] = {f"layer {i}": value for i, value in enumerate(values)}
        return LayerWeights(weights)

    # ---- fine-tuned encoders

    def lr_multipliers(self, prefix: str) -> list[LrMultiplier]:
        """For each part of each fine-tuned encoder; `prefix` is the name of this module in the learner."""
        config = self.config
        speeds: dict[str, Any] = {
            "multiplier": config.encoder_lr_multiplier,
            "decay": config.layer_decay,
            "unfreeze": config.unfreeze,
        }
        tuned: list[Encoder] = list(self.tuned)  # type: ignore[arg-type]
        return [pace for n, encoder in enumerate(tuned) for pace in lr_multipliers(encoder, f"{prefix}tuned.{n}.", **speeds)]


def _bytes(word: str) -> int:
    return len(word.encode("utf-8", "ignore"))


def _joined(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate vectors; a single part is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=-1)


def _at_least_one_word(layers: Tensor) -> Tensor:
    """Return layers with room for one word at least, for batches of empty texts."""
    return layers if layers.shape[2] else layers.new_zeros(*layers.shape[:2], 1, layers.shape[3])


def split_encoders(encoders: Sequence[Encoder]) -> tuple[WordVectorTable | None, list[Encoder]]:
    """Split encoders into word vectors, which initialize the task's own table, and contextual encoders."""
    tables: list[Any] = [encoder for encoder in encoders if encoder.static]
    if len(tables) > 1:
        raise ConfigError(f"got {len(tables)} tables of word vectors; a task takes one: choose one, or join their files")
    return (tables[0] if tables else None), [encoder for encoder in encoders if not encoder.static]
