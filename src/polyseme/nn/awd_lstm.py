"""AWD-LSTM: plain stacked LSTM layers with dropout of everything that can be dropped.

Merity et al. 2017, "Regularizing and Optimizing LSTM Language Models". In training

- a word is dropped with its whole vector, everywhere in the batch (`words`),
- variational dropout (Gal and Ghahramani 2016) applies to the input of the first layer (`input`), between layers (`hidden`)
  and to the input of the output layer (`output`),
- single recurrent weights are dropped for all steps of a batch (DropConnect; `weight`).

DropConnect leaves the steps of the recurrence alone, so each layer is one call of PyTorch's fused LSTM, on a GPU cuDNN's. That
one wants all weights of a layer contiguous and in its own order, or it copies them at each call with a warning. The dropped
matrix is a new tensor each time, so the weights are concatenated here each time. Every layer but the last has `hidden_size`
units. The last has the size of a word vector, so that the word table can be the weight of the output layer.

On a GPU under autocast a layer computes in bfloat16, and with zeros up to the next multiple of 8 units: for others, such as the
published 1,150, tensor cores have only slow kernels. A unit of zeros stays zero, so nothing else changes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.config import AwdDropout
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.stacked_bilstm import without_autocast

AwdLstmState = list[tuple[Tensor, Tensor]]
"""Hidden state and cell of each layer, (batch, units of the layer) each."""


class WeightDropLstm(nn.Module):
    """One LSTM layer with dropout of its recurrent weights; gate order: input, forget, candidate, output.

    Vectors (batch, steps, inputs) and a state (batch, units) twice -> outputs (batch, steps, units) and the end state.

    >>> layer = WeightDropLstm(3, 5, rate=0.5)
    >>> layer(torch.ones(2, 4, 3), (torch.zeros(2, 5), torch.zeros(2, 5)))[0].shape
    torch.Size([2, 4, 5])
    """

    def __init__(self, inputs: int, units: int, *, rate: float = 0.0) -> None:
        super().__init__()
        self.rate = rate
        self.input_weight = nn.Parameter(torch.empty(4 * units, inputs))
        self.recurrent_weight = nn.Parameter(torch.empty(4 * units, units))
        self.bias = nn.Parameter(torch.zeros(4 * units))
        for weight in (self.input_weight, self.recurrent_weight):
            nn.init.uniform_(weight, -(units**-0.5), units**-0.5)

    @property
    def units(self) -> int:
        return self.recurrent_weight.shape[1]

    def dropped(self) -> Tensor:
        """Return the recurrent weights, in training with dropout."""
        return F.dropout(self.recurrent_weight, self.rate, self.training)

    def forward(self, vectors: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        half = vectors.is_cuda and torch.is_autocast_enabled("cuda")
        kind = torch.get_autocast_dtype("cuda") if half else self.bias.dtype
        return self.fused(vectors, state, kind, multiple=8 if half else 1)

    def fused(
        self, vectors: Tensor, state: tuple[Tensor, Tensor], kind: torch.dtype, *, multiple: int = 1
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """PyTorch's fused LSTM, computed in a type of numbers, with units and inputs up to the next multiple."""
        units, inputs = self.units, -vectors.shape[2] % multiple
        more = -units % multiple
        with without_autocast(vectors.device):
            weights = self._contiguous(self.dropped().to(kind), units=more, inputs=inputs)
            start = [F.pad(each.to(kind), (0, more)).unsqueeze(0) for each in state]
            keeps = torch.is_grad_enabled()  # keep what gradients need, in evaluation mode too
            read = F.pad(vectors.to(kind), (0, inputs))
            outputs, hidden, cell = torch.lstm(read, start, weights, True, 1, 0.0, keeps, False, True)
        found = (outputs[..., :units], hidden[0, :, :units], cell[0, :, :units])
        outputs, hidden, cell = (each.to(self.bias.dtype) for each in found)
        return outputs, (hidden, cell)

    def plain(self, vectors: Tensor, state: tuple[Tensor, Tensor], recurrent: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The reference: the same, one step at a time, with given recurrent weights."""
        hidden, cell = state
        outputs = []
        for step in vectors.unbind(1):
            i, f, g, o = (step @ self.input_weight.T + hidden @ recurrent.T + self.bias).chunk(4, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden, cell)

    def _contiguous(self, recurrent: Tensor, *, units: int, inputs: int) -> list[Tensor]:
        """Return the weights as PyTorch's LSTM takes them, contiguous in cuDNN's order: matrices, then biases.

        They have the type of the recurrent weights, and zeros for more units and inputs. It takes two biases; the second is
        zero.
        """
        bias = _padded_gates(self.bias.to(recurrent).unsqueeze(1), units, 0).squeeze(1)
        matrices = [
            _padded_gates(self.input_weight.to(recurrent), units, inputs),
            _padded_gates(recurrent, units, units),
        ]
        parts = [*matrices, bias, torch.zeros_like(bias)]
        memory = torch.cat([part.flatten() for part in parts])
        flat = memory.split([part.numel() for part in parts])
        return [each.view(part.shape) for each, part in zip(flat, parts, strict=True)]


def _padded_gates(weight: Tensor, rows: int, columns: int) -> Tensor:
    """Add rows of zeros to each of the four gates, and columns of zeros: (4 * units, n) to (4 * (units + rows), n + more)."""
    if not rows and not columns:
        return weight
    return F.pad(weight.unflatten(0, (4, -1)), (0, columns, 0, rows)).flatten(0, 1)


@dataclass(frozen=True)
class AwdLstmOutput:
    """The output of an AWD-LSTM."""

    layers: list[Tensor]
    """(batch, steps, units) for each layer, without dropout."""
    top: Tensor
    """(batch, steps, dim): the last layer as the output layer reads it, in training with dropout."""
    end: AwdLstmState


class AwdLstm(nn.Module):
    """AWD-LSTM layers over word vectors; `set_dropout` may be called at any time.

    >>> lstm = AwdLstm(dim=4, hidden_size=6, layers=3)
    >>> [each.shape[2] for each in lstm(torch.ones(1, 2, 4), lstm.zero_state(1)).layers]
    [6, 6, 4]
    """

    def __init__(self, *, dim: int, hidden_size: int, layers: int) -> None:
        super().__init__()
        sizes = [dim] + [hidden_size] * (layers - 1) + [dim]
        self.layers = nn.ModuleList(WeightDropLstm(a, b) for a, b in itertools.pairwise(sizes))
        self.input, self.between, self.output = (VariationalDropout(0.0) for _ in range(3))

    def set_dropout(self, dropout: AwdDropout) -> None:
        """Set the dropout in training. Whoever looks up words applies `dropout.words` (`drop_words`)."""
        self.input.rate, self.between.rate, self.output.rate = dropout.input, dropout.hidden, dropout.output
        for layer in self.stack():
            layer.rate = dropout.weight

    def dropout_rates(self) -> list[float]:
        """Return the rates that `set_dropout` sets."""
        return [self.input.rate, self.between.rate, self.output.rate, *(layer.rate for layer in self.stack())]

    def stack(self) -> list[WeightDropLstm]:
        """Return the layers, from the bottom up."""
        return list(self.layers)  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> AwdLstmState:
        bias = self.stack()[0].bias
        return [(bias.new_zeros(rows, layer.units), bias.new_zeros(rows, layer.units)) for layer in self.stack()]

    def forward(self, vectors: Tensor, state: AwdLstmState) -> AwdLstmOutput:
        """Read word vectors (batch, steps, dim), from the state before them."""
        outputs: list[Tensor] = []
        end: AwdLstmState = []
        read = self.input(vectors)
        for number, (layer, before) in enumerate(zip(self.stack(), state, strict=True)):
            output, after = layer(read if number == 0 else self.between(read), before)
            outputs.append(output)
            end.append(after)
            read = output
        return AwdLstmOutput(outputs, self.output(read), end)


def drop_words(table: nn.Embedding, rows: Tensor, rate: float, training: bool) -> Tensor:
    """Look up vectors, (...) -> (..., dim); in training some words of the vocabulary are zeros, wherever they occur."""
    vectors: Tensor = table(rows)
    if not training or rate == 0.0:
        return vectors
    kept = F.dropout(vectors.new_ones(table.num_embeddings), rate)
    return vectors * kept[rows].unsqueeze(-1)


def activation_loss(reading: AwdLstmOutput, *, size: float, change: float) -> Tensor:
    """Return the regularization of the top layer: for small activations (AR) and for small changes (TAR)."""
    raw = reading.layers[-1].float()
    loss = size * reading.top.float().square().mean()
    if raw.shape[1] > 1:
        loss = loss + change * (raw[:, 1:] - raw[:, :-1]).square().mean()
    return loss
