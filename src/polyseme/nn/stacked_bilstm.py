"""Stacked bidirectional LSTM layers over the words of a text: the body of most task networks.

Each layer reads the words in both directions and passes on both states. Texts of different lengths are packed without padding
(`packing`), once for all layers: a text gives the same result alone as beside longer ones, and a text may be empty.
`torch.nn.LSTM` gets a `PackedSequence`. Dropout is variational (Gal and Ghahramani 2016). Extra vectors can enter between
layers, where TagLM adds its language model (Peters et al. 2017).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from polyseme.base.errors import UsageError
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.packing import Packing
from polyseme.nn.pooling import pool
from polyseme.nn.to_device import to_device

_X86 = platform.machine().lower() in ("x86_64", "amd64")


class StackedBiLstm(nn.Module):
    """Bidirectional LSTM layers of `hidden_size` units per direction, with dropout on each layer's input and on the output.

    Words (batch, words, inputs) and a mask (batch, words), true on words and false on padding behind them, give
    (batch, words, 2 * hidden_size), zero on padding. Lengths (batch,) on the CPU save a wait for the GPU; by default they are
    counted from the mask. Vectors `extra` (batch, words, extra_inputs) are concatenated to the outputs of the layers in
    `between`, counted from 1; None: the first, so that they enter the second.

    >>> StackedBiLstm(4, 8, 2)(torch.ones(1, 3, 4), torch.tensor([[True, True, False]])).shape
    torch.Size([1, 3, 16])
    """

    def __init__(
        self,
        inputs: int,
        hidden_size: int,
        layers: int = 1,
        *,
        dropout: float = 0.0,
        extra_inputs: int = 0,
        between: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.dim = 2 * hidden_size  # of an output vector
        self.extra_inputs = extra_inputs
        self.between = frozenset((1,) if between is None else between) if extra_inputs else frozenset()
        if any(not 1 <= layer < layers for layer in self.between):
            raise UsageError(
                f"extra vectors cannot enter after layers {sorted(self.between)} of {layers}: another layer must follow"
            )
        sizes = [inputs] + [self.dim + (extra_inputs if layer in self.between else 0) for layer in range(1, layers)]
        self.layers = nn.ModuleList(nn.LSTM(size, hidden_size, bidirectional=True, batch_first=True) for size in sizes)
        self.dropout = VariationalDropout(dropout)
        for lstm in self.layers:
            _initialise(lstm)

    def forward(self, vectors: Tensor, mask: Tensor, lengths: Tensor | None = None, extra: Tensor | None = None) -> Tensor:
        given = 0 if extra is None else extra.shape[2]
        if given != self.extra_inputs:
            raise UsageError(f"the network takes extra vectors of size {self.extra_inputs}; got {given}")
        lengths = (mask.sum(1) if lengths is None else lengths).cpu()
        if not bool(lengths.any()):
            return vectors.new_zeros(*vectors.shape[:2], self.dim)
        if not vectors.is_cuda and torch.is_grad_enabled():  # gradients of PyTorch's packed layers are slow on a CPU
            return self._padded(vectors, mask, lengths, extra)
        packing = Packing(lengths)
        positions = to_device(packing.rows * vectors.shape[1] + packing.steps, vectors.device)
        sizes = torch.tensor(packing.sizes)
        for number, lstm in enumerate(self.layers):
            if extra is not None and number in self.between:
                vectors = torch.cat([vectors, extra], dim=2)
            vectors = self._layer(lstm, self.dropout(vectors), positions, sizes)
        return self.dropout(vectors)

    def _padded(self, vectors: Tensor, mask: Tensor, lengths: Tensor, extra: Tensor | None) -> Tensor:
        """The same over padded texts: the backward direction reads each text reversed, so that padding comes last."""
        steps = torch.arange(vectors.shape[1])
        reversed_steps = torch.where(mask, lengths[:, None] - 1 - steps, steps).unsqueeze(2)  # the word read at each step
        for number, lstm in enumerate(self.layers):
            if extra is not None and number in self.between:
                vectors = torch.cat([vectors, extra], dim=2)
            vectors = self.dropout(vectors).to(next(lstm.parameters()).dtype)
            forward = _one_way(lstm, vectors, "")
            backward = _one_way(lstm, vectors.gather(1, reversed_steps.expand_as(vectors)), "_reverse")
            states = torch.cat([forward, backward.gather(1, reversed_steps.expand_as(backward))], dim=2)
            vectors = states.masked_fill(~mask.unsqueeze(2), 0.0)
        return self.dropout(vectors)

    def _layer(self, lstm: nn.Module, vectors: Tensor, positions: Tensor, sizes: Tensor) -> Tensor:
        """One layer: (batch, words, dim) -> (batch, words, 2 * hidden)."""
        packed = vectors.flatten(0, 1).index_select(0, positions).to(next(lstm.parameters()).dtype)
        with without_autocast(vectors.device):
            states = lstm(PackedSequence(packed, sizes))[0].data
        padded = states.new_zeros(vectors.shape[0] * vectors.shape[1], self.dim).index_copy(0, positions, states)
        return padded.view(*vectors.shape[:2], self.dim)


def without_autocast(device: torch.device) -> torch.autocast:
    """A block in which `torch.nn.LSTM` computes in the type of its weights; on a GPU with TF32 matmuls.

    Autocast to bfloat16 would run cuDNN's LSTM in float16, where small gradients underflow, and its outputs cannot be
    concatenated with bfloat16 ones (`torch.cat` in PyTorch 2.13). On a CPU without bfloat16 it fails.
    """
    return torch.autocast(device.type, enabled=False)


def _one_way(lstm: nn.Module, vectors: Tensor, suffix: str) -> Tensor:
    """Run one direction of a layer over padded texts, from zeros: (batch, words, dim) -> (batch, words, hidden)."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = [getattr(lstm, name + suffix) for name in names]
    zero = vectors.new_zeros(1, len(vectors), weights[1].shape[1])
    with without_autocast(vectors.device), _faster_kernels():
        states: Tensor = torch.lstm(vectors, (zero, zero), weights, True, 1, 0.0, lstm.training, False, True)[0]
    return states


@contextmanager
def _faster_kernels() -> Iterator[None]:
    """A block in which LSTMs use PyTorch's kernels where oneDNN's are slower with gradients: on ARM, by a third."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = before and _X86  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.backends.mkldnn.enabled = before


def final_states(states: Tensor, mask: Tensor) -> Tensor:
    """Return the last state of each direction: (batch, words, 2 * hidden) -> (batch, 2 * hidden), zeros for an empty text."""
    forward, backward = states.chunk(2, dim=2)
    return torch.cat([pool(forward, mask, "last"), pool(backward, mask, "first")], dim=1)


@torch.no_grad()
def _initialise(lstm: nn.Module) -> None:
    """Orthogonal recurrent weights, Glorot input weights, biases 0; 1 for the forget gate."""
    for name, parameter in lstm.named_parameters():
        if name.startswith("weight"):
            for gate in parameter.chunk(4):
                (nn.init.orthogonal_ if name.startswith("weight_hh") else nn.init.xavier_uniform_)(gate)
        else:
            parameter.zero_()
            if name.startswith("bias_ih"):  # the other bias is added to it
                parameter.chunk(4)[1].fill_(1.0)
