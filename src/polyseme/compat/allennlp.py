"""AllenNLP's ELMo: `Elmo`, `batch_to_ids`, `ELMoCharacterMapper` and `ScalarMix` as in 2.10, `ElmoEmbedder` as in 0.9.

`_ElmoBiLm` and `remove_sentence_boundaries` are here for programs that took the layers from the network inside `Elmo`.

`Elmo` and `ElmoEmbedder` are stateful, as they were: row k of a batch reads on from row k of the batch before. `stateful=False`
(new here) starts every sentence from the same state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.compat.allennlp_bilm import ElmoBiLm, remove_sentence_boundaries
from polyseme.compat.elmo_embedder import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, ElmoEmbedder
from polyseme.compat.old_inputs import id_tensor, word_lists
from polyseme.text.characters import Utf8Characters

__all__ = [
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "ELMoCharacterMapper",
    "Elmo",
    "ElmoEmbedder",
    "ScalarMix",
    "_ElmoBiLm",
    "batch_to_ids",
    "remove_sentence_boundaries",
]
_ElmoBiLm = ElmoBiLm
_EPSILON = 1e-13
_CHARACTERS = Utf8Characters()


def batch_to_ids(batch: Sequence[Sequence[str]]) -> Tensor:
    """Spell sentences of words as character ids, (sentences, longest, 50), with zeros on padding."""
    sentences = word_lists(batch)
    ids = torch.zeros(len(sentences), max(map(len, sentences), default=0), _CHARACTERS.max_length, dtype=torch.int64)
    for row, words in enumerate(sentences):
        ids[row, : len(words)] = torch.from_numpy(_CHARACTERS.encode(words)[0])
    return ids


class ELMoCharacterMapper:
    """Spells one word after another."""

    max_word_length, bos_token, eos_token = _CHARACTERS.max_length, "<S>", "</S>"

    @staticmethod
    def convert_word_to_char_ids(word: str) -> list[int]:
        """Spell one word: 50 ids."""
        return [int(number) for number in _CHARACTERS.encode([word])[0][0]]


class ScalarMix(nn.Module):
    """A weighted sum of tensors of one shape: gamma * sum of softmax(w)_k * tensor_k."""

    def __init__(
        self,
        mixture_size: int,
        do_layer_norm: bool = False,
        initial_scalar_parameters: Sequence[float] | None = None,
        trainable: bool = True,
    ) -> None:
        super().__init__()
        start = [0.0] * mixture_size if initial_scalar_parameters is None else list(initial_scalar_parameters)
        if len(start) != mixture_size:
            raise UsageError(f"got {len(start)} initial_scalar_parameters for a mixture_size of {mixture_size}")
        self.mixture_size, self.do_layer_norm = mixture_size, do_layer_norm
        weights = [nn.Parameter(torch.tensor([float(each)]), requires_grad=trainable) for each in start]
        self.scalar_parameters = nn.ParameterList(weights)
        self.gamma = nn.Parameter(torch.ones(1), requires_grad=trainable)

    def forward(self, tensors: Sequence[Tensor], mask: Tensor | None = None) -> Tensor:
        """Mix tensors (..., dim); the layer norm takes one mean and variance over all that `mask` (...) leaves."""
        if len(tensors) != self.mixture_size:
            raise UsageError(f"got {len(tensors)} tensors for a mixture_size of {self.mixture_size}")
        if self.do_layer_norm:
            if mask is None:
                raise UsageError("do_layer_norm needs the mask of the tensors")
            tensors = [_layer_norm(tensor, mask.bool()) for tensor in tensors]
        shares = torch.softmax(torch.cat(list(self.scalar_parameters)), dim=0)
        return self.gamma * sum(share * tensor for share, tensor in zip(shares, tensors, strict=True))


def _layer_norm(tensor: Tensor, mask: Tensor) -> Tensor:
    kept = tensor[mask]
    return (tensor - kept.mean()) / torch.sqrt(kept.var(correction=0) + _EPSILON)


class Elmo(nn.Module):
    """ELMo representations for a network: mixes of the layers, with a dropout behind them.

    Cached words are looked up by their spelling, so `vocab_to_cache` only says what `word_inputs` mean: gradients and vectors
    are those of the characters.
    """

    def __init__(
        self,
        options_file: str | Path | None,
        weight_file: str | Path | None,
        num_output_representations: int,
        requires_grad: bool = False,
        do_layer_norm: bool = False,
        dropout: float = 0.5,
        vocab_to_cache: list[str] | None = None,
        keep_sentence_boundaries: bool = False,
        scalar_mix_parameters: list[float] | None = None,
        module: nn.Module | None = None,
        *,
        stateful: bool = True,
    ) -> None:
        super().__init__()
        if module is not None and (options_file is not None or weight_file is not None):
            raise UsageError("give either options_file and weight_file, or module")
        made = module or ElmoBiLm(options_file, weight_file, requires_grad, vocab_to_cache, stateful=stateful)
        self._elmo_lstm: Any = made
        self._keep_sentence_boundaries, self._dropout = keep_sentence_boundaries, nn.Dropout(dropout)
        trainable, layers = scalar_mix_parameters is None, int(made.num_layers)  # type: ignore[arg-type]
        self._scalar_mixes: Any = [  # a list, whose modules have the names that AllenNLP gave them
            ScalarMix(layers, do_layer_norm, scalar_mix_parameters, trainable) for _ in range(num_output_representations)
        ]
        for number, mix in enumerate(self._scalar_mixes):
            self.add_module(f"scalar_mix_{number}", mix)
        self._has_cached_vocab = vocab_to_cache is not None

    def get_output_dim(self) -> int:
        return int(self._elmo_lstm.get_output_dim())

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Character ids (..., words, 50) -> `elmo_representations`, a list of (..., words, dim), and `mask` (..., words)."""
        inputs = id_tensor(inputs)
        shape = tuple(inputs.shape[:-1] if word_inputs is None else word_inputs.shape)
        rows = math.prod(shape[:-1])
        flat = inputs.reshape(rows, *inputs.shape[-2:])
        found = self._elmo_lstm(flat, None if word_inputs is None else word_inputs.reshape(rows, shape[-1]))
        layers, mask = found["activations"], found["mask"].bool()
        mixed = [getattr(self, f"scalar_mix_{number}")(layers, mask) for number in range(len(self._scalar_mixes))]
        if not self._keep_sentence_boundaries:
            mixed, mask = [remove_sentence_boundaries(each, mask)[0] for each in mixed], mask[:, 2:]
        shape = (*shape[:-1], mask.shape[1])
        vectors = [self._dropout(each).view(*shape, each.shape[-1]) for each in mixed]
        return {"elmo_representations": vectors, "mask": mask.view(shape)}
