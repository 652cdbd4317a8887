"""ESIM: one class for a sentence pair, from the word vectors (does the first sentence entail the second?).

Chen et al. 2017, "Enhanced LSTM for natural language inference", the sequential model: the network of the SNLI row of Peters
et al. 2018. Both texts share all layers and run as one batch of twice the size, so that the LSTMs run once.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.nn.attention import align
from polyseme.nn.dropout import VariationalDropout
from polyseme.nn.pooling import pool
from polyseme.nn.stacked_bilstm import StackedBiLstm

Pair = tuple[Tensor, Tensor]
"""One tensor for the first texts and one for the second; the numbers of words may differ."""


class Esim(nn.Module):
    """Words of two texts, each (batch, words, inputs), and masks (batch, words) -> class scores (batch, classes).

    Lengths, each (batch,) on the CPU, save a wait for the GPU. Vectors `at_output`, each (batch, words, output_inputs), are
    concatenated to the encoder's output, before alignment: the output position of the ELMo paper. A text may be empty: the
    other one then attends to zeros.

    >>> mask = torch.ones(2, 3, dtype=torch.bool)
    >>> Esim(4, 3, hidden_size=8)((torch.ones(2, 3, 4), torch.ones(2, 3, 4)), (mask, mask)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, inputs: int, classes: int, *, hidden_size: int = 300, dropout: float = 0.5, output_inputs: int = 0
    ) -> None:
        super().__init__()
        self.output_inputs = output_inputs
        self.dropout = VariationalDropout(dropout)
        self.encoder = StackedBiLstm(inputs, hidden_size)
        self.projection = nn.Sequential(nn.Linear(4 * (self.encoder.dim + output_inputs), hidden_size), nn.ReLU())
        self.composition = StackedBiLstm(hidden_size, hidden_size)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(4 * self.composition.dim, hidden_size),
            nn.Tanh(),
            nn.Dropout(dropout),
            nn.Linear(hidden_size, classes),
        )

    def forward(self, vectors: Pair, masks: Pair, lengths: Pair | None = None, at_output: Pair | None = None) -> Tensor:
        given = 0 if at_output is None else at_output[0].shape[2]
        if given != self.output_inputs:
            raise UsageError(f"the network takes output vectors of size {self.output_inputs}; got {given}")
        mask = _below(masks)
        counts = mask.sum(1).cpu() if lengths is None else torch.cat(lengths)
        x = self.encoder(self.dropout(_below(vectors)), mask, counts)
        if at_output is not None:
            x = torch.cat([x, _below(at_output)], dim=2)
        seen = torch.cat(align(*x.chunk(2), *mask.chunk(2)))
        x = self.projection(torch.cat([x, seen, x - seen, x * seen], dim=2))
        x = self.composition(self.dropout(x), mask, counts)
        pooled = torch.cat([pool(x, mask, "mean"), pool(x, mask, "max")], dim=1)
        scores: Tensor = self.classifier(torch.cat(pooled.chunk(2), dim=1))
        return scores


def _below(pair: Pair) -> Tensor:
    """Two tensors (batch, words, ...), padded with zeros to the same number of words, as one of (2 * batch, words, ...)."""
    words = max(part.shape[1] for part in pair)
    behind = (0, 0) * (pair[0].dim() - 2)
    return torch.cat([F.pad(part, (*behind, 0, words - part.shape[1])) for part in pair])
