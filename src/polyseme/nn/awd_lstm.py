"""AWD-LSTM: plain LSTM layers, one above the other, kept from learning by heart by dropout of everything that can be dropped.

Merity et al. 2017, "Regularizing and Optimizing LSTM Language Models". In training

- a word is dropped with its whole vector, wherever it stands in the batch (`words`),
- the same places of all words of a row are dropped (variational dropout, Gal and Ghahramani 2016) from what the first layer
  reads (`input`), from what goes between layers (`hidden`) and from what the output layer reads (`output`),
- single weights from state to gate are dropped for all steps of a batch (DropConnect; `weight`), so that no step of the
  recurrence need be touched.

The last one is why the layers are fast: each is one call of PyTorch's fused LSTM, on a GPU that of cuDNN. That one wants all
weights of a layer in one piece of memory, in its own order (else it copies them at each call, with a warning); the dropped
matrix is a new tensor each time, so the piece is laid together each time, by us. Every layer but the last has `hidden` units,
the last one as many as a word's vector has, so that the word table can be the output layer's weight.
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
"""For each layer its hidden state and its cell, (batch, units of the layer) each."""


class WeightDropLstm(nn.Module):
    """One LSTM layer whose weights from state to gate are dropped in training; gates: input, forget, candidate, output.

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
        """Size of its state."""
        return self.recurrent_weight.shape[1]

    def dropped(self) -> Tensor:
        """The weights from state to gate, in training without those that are dropped this time."""
        return F.dropout(self.recurrent_weight, self.rate, self.training)

    def forward(self, vectors: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        weights = self._in_one_piece(self.dropped())
        with without_autocast(vectors.device):
            kind = self.bias.dtype
            start = [each.to(kind).unsqueeze(0) for each in state]
            keeps = torch.is_grad_enabled()  # what gradients need, in evaluation too
            outputs, hidden, cell = torch.lstm(vectors.to(kind), start, weights, True, 1, 0.0, keeps, False, True)
        return outputs, (hidden[0], cell[0])

    def plain(self, vectors: Tensor, state: tuple[Tensor, Tensor], recurrent: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The reference: the same one step at a time, with the weights from state to gate given."""
        hidden, cell = state
        outputs = []
        for step in vectors.unbind(1):
            i, f, g, o = (step @ self.input_weight.T + hidden @ recurrent.T + self.bias).chunk(4, dim=1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1), (hidden, cell)

    def _in_one_piece(self, recurrent: Tensor) -> list[Tensor]:
        """The weights as PyTorch's LSTM takes them, in one piece of memory in cuDNN's order: matrices, then biases.

        It has two biases, of which one would do; the second is zero.
        """
        parts = [self.input_weight, recurrent, self.bias, torch.zeros_like(self.bias)]
        piece = torch.cat([part.flatten() for part in parts])
        flat = piece.split([part.numel() for part in parts])
        return [each.view(part.shape) for each, part in zip(flat, parts, strict=True)]


@dataclass(frozen=True)
class AwdLstmOutput:
    """What an AWD-LSTM made of some words."""

    layers: list[Tensor]
    """(batch, steps, units) for each layer, nothing dropped."""
    top: Tensor
    """(batch, steps, dim): the last one as the output layer reads it, in training with its dropout."""
    end: AwdLstmState


class AwdLstm(nn.Module):
    """The layers over the words' vectors; `dropout` may be set anew at any time (`set_dropout`).

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
        """Drop so much from now on, in training; that of words is for whoever looks them up (`drop_words`)."""
        self.input.rate, self.between.rate, self.output.rate = dropout.input, dropout.hidden, dropout.output
        for layer in self.stack():
            layer.rate = dropout.weight

    def stack(self) -> list[WeightDropLstm]:
        """The layers, from the bottom up."""
        return list(self.layers)  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> AwdLstmState:
        """A state of zeros."""
        bias = self.stack()[0].bias
        return [(bias.new_zeros(rows, layer.units), bias.new_zeros(rows, layer.units)) for layer in self.stack()]

    def forward(self, vectors: Tensor, state: AwdLstmState) -> AwdLstmOutput:
        """Words' vectors (batch, steps, dim) and the state before them."""
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
    """The vectors of rows of a table, (...) -> (..., dim); in training a share of all words are zeros, wherever they stand."""
    vectors: Tensor = table(rows)
    if not training or rate == 0.0:
        return vectors
    kept = F.dropout(vectors.new_ones(table.num_embeddings), rate)
    return vectors * kept[rows].unsqueeze(-1)


def activation_loss(reading: AwdLstmOutput, *, size: float, change: float) -> Tensor:
    """Keeps the top layer's activations small (AR: those that are not dropped) and slow (TAR: from step to step)."""
    raw = reading.layers[-1].float()
    loss = size * reading.top.float().square().mean()
    if raw.shape[1] > 1:
        loss = loss + change * (raw[:, 1:] - raw[:, :-1]).square().mean()
    return loss
