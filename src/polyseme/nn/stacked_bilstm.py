"""Stacked bidirectional LSTM layers over the words of a text: the body of most task networks.

Each layer reads the words in both directions and passes on both states. Texts of different lengths are packed without padding
(`packing`), once for all layers: a text gives the same result alone as beside longer ones, and a text may be empty.
`torch.nn.LSTM` gets a `PackedSequence`; with gradients on a CPU `packed_bilstm` computes the same faster.
Dropout is variational (Gal and Ghahramani 2016). Extra vectors can enter between layers, where TagLM adds its language model
(Peters et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from polyseme.base.errors import UsageError
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.lstm.packed_bilstm import packed_bilstm
from polyseme.nn.packing import Packing
from polyseme.nn.pooling import pool
from polyseme.nn.to_device import to_device

PackedLayer = Callable[[nn.Module, Tensor], Tensor]
"""Runs a layer over packed words: (words, inputs) -> (words, 2 * hidden)."""


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
        packing = Packing(lengths)
        positions = to_device(packing.rows * vectors.shape[1] + packing.steps, vectors.device)
        on_cpu = not vectors.is_cuda and torch.is_grad_enabled() and len(packing.order) > 1
        run = _with_gradients_on_cpu(packing) if on_cpu else _as_pytorch(packing)
        for number, lstm in enumerate(self.layers):
            if extra is not None and number in self.between:
                vectors = torch.cat([vectors, extra], dim=2)
            vectors = self._layer(lstm, self.dropout(vectors), positions, run)
        return self.dropout(vectors)

    def _layer(self, lstm: nn.Module, vectors: Tensor, positions: Tensor, run: PackedLayer) -> Tensor:
        """One layer: (batch, words, dim) -> (batch, words, 2 * hidden)."""
        packed = vectors.flatten(0, 1).index_select(0, positions).to(next(lstm.parameters()).dtype)
        with without_autocast(vectors.device):
            states = run(lstm, packed)
        padded = states.new_zeros(vectors.shape[0] * vectors.shape[1], self.dim).index_copy(0, positions, states)
        return padded.view(*vectors.shape[:2], self.dim)


def _as_pytorch(packing: Packing) -> PackedLayer:
    sizes = torch.tensor(packing.sizes)
    return lambda lstm, packed: lstm(PackedSequence(packed, sizes))[0].data


def _with_gradients_on_cpu(packing: Packing) -> PackedLayer:
    """Gradients of PyTorch's layers are slow on a CPU, but for a single text."""
    order = packing.reversed_order()
    return lambda lstm, packed: packed_bilstm(lstm, packed, packing.sizes, order)


def without_autocast(device: torch.device) -> torch.autocast:
    """A block in which `torch.nn.LSTM` computes in the type of its weights; on a GPU with TF32 matmuls.

    Autocast to bfloat16 would run cuDNN's LSTM in float16, where small gradients underflow, and its outputs cannot be
    concatenated with bfloat16 ones (`torch.cat` in PyTorch 2.13). On a CPU without bfloat16 it fails.
    """
    return torch.autocast(device.type, enabled=False)


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
