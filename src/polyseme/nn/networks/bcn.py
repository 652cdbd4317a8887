"""The biattentive classification network (BCN): one class for a text, from its word vectors.

McCann et al. 2017, "Learned in translation", for a single text, which attends to itself: the network of the SST row of Peters
et al. 2018. Defaults follow those papers: 300 units per direction, maxout layers of 1200 and 600 units with a pool size of 4.
Our choice: a plain linear layer scores the classes, after two maxout layers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.nn.attention import SelfAttentivePooling, attend
from polyseme.nn.maxout import Maxout
from polyseme.nn.pooling import pool
from polyseme.nn.stacked_bilstm import StackedBiLstm


class Bcn(nn.Module):
    """Words (batch, words, inputs) and a mask (batch, words) -> class scores (batch, classes).

    Lengths (batch,) on the CPU save a wait for the GPU. Vectors `at_output` (batch, words, output_inputs) are concatenated to
    the output of the last LSTM, before pooling: the output position of the ELMo paper. A text may be empty.

    >>> Bcn(4, 5, hidden_size=8).eval()(torch.ones(2, 3, 4), torch.ones(2, 3, dtype=torch.bool)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        inputs: int,
        classes: int,
        *,
        hidden_size: int = 300,
        pool_size: int = 4,
        dropout: float = 0.25,
        batch_norm: bool = True,
        output_inputs: int = 0,
    ) -> None:
        super().__init__()
        self.output_inputs = output_inputs
        self.before = nn.Sequential(nn.Linear(inputs, hidden_size), nn.ReLU(), nn.Dropout(dropout))
        self.encoder = StackedBiLstm(hidden_size, hidden_size)
        self.integrator = StackedBiLstm(3 * self.encoder.dim, hidden_size)
        pooled = self.integrator.dim + output_inputs
        self.attentive = SelfAttentivePooling(pooled)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            Maxout(4 * pooled, 4 * hidden_size, pool_size, dropout=dropout, batch_norm=batch_norm),
            Maxout(4 * hidden_size, 2 * hidden_size, pool_size, dropout=dropout, batch_norm=batch_norm),
            nn.Linear(2 * hidden_size, classes),
        )

    def forward(self, vectors: Tensor, mask: Tensor, lengths: Tensor | None = None, at_output: Tensor | None = None) -> Tensor:
        given = 0 if at_output is None else at_output.shape[2]
        if given != self.output_inputs:
            raise UsageError(f"the network takes output vectors of size {self.output_inputs}; got {given}")
        lengths = mask.sum(1).cpu() if lengths is None else lengths
        x = self.encoder(self.before(vectors), mask, lengths)
        seen = attend(x, x, x, mask, mask)  # biattention of a text with itself: both directions are the same
        x = self.integrator(torch.cat([x, x - seen, x * seen], dim=2), mask, lengths)
        if at_output is not None:
            x = torch.cat([x, at_output], dim=2)
        pooled = [pool(x, mask, "max"), pool(x, mask, "mean"), -pool(-x, mask, "max"), self.attentive(x, mask)]
        scores: Tensor = self.classifier(torch.cat(pooled, dim=1))
        return scores
