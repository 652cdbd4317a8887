"""A deep LSTM of alternating directions with highway connections, after He et al. 2017, "Deep Semantic Role Labeling".

Eight layers of one direction each: every layer but the first reads the output of a layer of the other direction. A gate lets
each layer pass on its input beside its own state. In the paper the gate is inside the cell and sees the previous state. Here a
layer is a plain `torch.nn.LSTM`, and the gate is computed for all words at once from its input and output, so that cuDNN runs
the steps. The paper multiplies the passed input by a matrix in each layer. Here only the first layer does, whose input has
another size; the others pass it unchanged, which gives gradients a direct path. Dropout is variational, on each layer's input
and on the output; the paper also drops within the recurrence, which cuDNN's cell does not support.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from polyseme.base.errors import UsageError
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.packing import Packing
from polyseme.nn.stacked_bilstm import without_autocast
from polyseme.nn.to_device import to_device


class HighwayLstm(nn.Module):
    """`layers` LSTM layers of `hidden_size` units, each in one direction: the first forward, the second backward, and so on.

    Words (batch, words, inputs) and a mask (batch, words), true on words and false on padding behind them, give
    (batch, words, hidden_size), zero on padding; a text may be empty. Lengths (batch,) on the CPU save a wait for the GPU;
    without them they are counted from the mask.

    >>> HighwayLstm(4, 8, 3)(torch.ones(1, 3, 4), torch.tensor([[True, True, False]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, inputs: int, hidden_size: int, layers: int = 8, *, dropout: float = 0.0) -> None:
        super().__init__()
        if layers < 1:
            raise UsageError(f"layers is {layers}; allowed: 1 or more")
        self.dim = hidden_size  # of an output vector
        self.layers = nn.ModuleList(_Layer(hidden_size if number else inputs, hidden_size) for number in range(layers))
        self.dropout = VariationalDropout(dropout)

    def forward(self, vectors: Tensor, mask: Tensor, lengths: Tensor | None = None) -> Tensor:
        batch, width = vectors.shape[:2]
        lengths = (mask.sum(1) if lengths is None else lengths).cpu()
        if not bool(lengths.any()):
            return vectors.new_zeros(batch, width, self.dim)
        packing, device = Packing(lengths), vectors.device
        positions = to_device(packing.rows * width + packing.steps, device)  # of packed words among the padded ones
        rows = to_device(packing.rows, device)
        reversed_order = to_device(_reversed(packing, lengths, width), device)
        sizes = torch.tensor(packing.sizes)
        states = vectors.flatten(0, 1).index_select(0, positions)  # (packed, inputs)
        for number, layer in enumerate(self.layers):
            states = self._dropped(states, rows, batch)
            states = layer(states, sizes, reversed_order if number % 2 else None)
        states = self._dropped(states, rows, batch)
        padded = states.new_zeros(batch * width, self.dim).index_copy(0, positions, states)
        return padded.view(batch, width, self.dim)

    def _dropped(self, states: Tensor, rows: Tensor, batch: int) -> Tensor:
        """Apply one dropout mask per text to packed words (packed, dim)."""
        if not self.training or self.dropout.rate == 0.0:
            return states
        return states * self.dropout(states.new_ones(batch, 1, states.shape[1])).squeeze(1).index_select(0, rows)


class _Layer(nn.Module):
    """An LSTM of one direction and the highway around it: packed words (packed, inputs) -> (packed, hidden_size)."""

    def __init__(self, inputs: int, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden_size)
        self.gate = nn.Linear(inputs + hidden_size, hidden_size)
        self.passed = nn.Linear(inputs, hidden_size, bias=False) if inputs != hidden_size else None
        _initialise(self)

    def forward(self, vectors: Tensor, sizes: Tensor, reversed_order: Tensor | None) -> Tensor:
        vectors = vectors.to(self.gate.weight.dtype)
        read = vectors if reversed_order is None else vectors.index_select(0, reversed_order)
        with without_autocast(read.device):
            states = self.lstm(PackedSequence(read, sizes))[0].data
        states = states if reversed_order is None else states.index_select(0, reversed_order)
        gate = torch.sigmoid(self.gate(torch.cat([vectors, states], dim=1)))
        passed = vectors if self.passed is None else self.passed(vectors).to(vectors.dtype)
        return passed + gate * (states - passed)


def _reversed(packing: Packing, lengths: Tensor, width: int) -> Tensor:
    """Return the packed position of each packed word's mirror image in its text; applied twice it is the identity.

    >>> _reversed(Packing(torch.tensor([1, 3])), torch.tensor([1, 3]), 3).tolist()     # packed: row 1, row 0, row 1, row 1
    [3, 1, 2, 0]
    """
    position_of = torch.zeros(len(lengths) * width, dtype=torch.long)
    position_of[packing.rows * width + packing.steps] = torch.arange(len(packing.rows))
    return position_of[packing.rows * width + lengths[packing.rows] - 1 - packing.steps]


@torch.no_grad()
def _initialise(layer: _Layer) -> None:
    """Orthogonal matrices, as in the paper. Biases are 0, but 1 for forget gates, so that states last, and -2 for highways, so
    that a layer at first passes on most of its input (Srivastava et al. 2015): in a short run (260 steps, 8 layers of 128,
    PropBank EWT, one seed) dev F1 was 0.24 with -2, 0.20 with -1 and 0.12 with 0.
    """
    for name, parameter in layer.named_parameters():
        if parameter.ndim == 2:
            for matrix in parameter.chunk(4) if name.startswith("lstm.") else (parameter,):
                nn.init.orthogonal_(matrix)
        else:
            parameter.zero_()
            if name == "lstm.bias_ih_l0":  # the other bias is added to it
                parameter.chunk(4)[1].fill_(1.0)
    layer.gate.bias.fill_(-2.0)
