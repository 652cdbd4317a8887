"""An AWD-LSTM in training, on a GPU as CUDA graphs: one for each length of a batch that occurs often.

cuDNN starts some small computations for each word and layer. In batches of few rows a GPU waits for them longer than it
computes. A graph starts them all at once. Capturing one takes about as long as `OFTEN` batches gain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from polyseme.nn.awd_lstm import AwdLstm, AwdLstmOutput, AwdLstmState
from polyseme.nn.cuda_graph import can_replay, capture
from polyseme.nn.lstm.layers import plain_wanted

OFTEN = 20  # batches of a shape, after which its graph is captured
FREE = 0.25  # of the GPU's memory: with less, no more graphs are captured


class GraphedAwdLstm:
    """Calls an `AwdLstm`. Its output has the last layer alone, and no gradients flow through the end state."""

    def __init__(self, lstm: AwdLstm) -> None:
        self._reader = _Reader(lstm)
        self._fits: object = None
        self._graphs: dict[Any, Callable[..., tuple[Tensor, ...]]] = {}
        self._seen: Counter[Any] = Counter()
        self._pool: Any = None

    def __call__(self, vectors: Tensor, state: AwdLstmState) -> AwdLstmOutput:
        tensors = (vectors, *(each for pair in state for each in pair))
        raw, top, *end = self._call(*tensors)(*tensors)
        return AwdLstmOutput([raw], top, list(zip(end[::2], end[1::2], strict=True)))

    def _call(self, *tensors: Tensor) -> Callable[..., tuple[Tensor, ...]]:
        """Return the graph for tensors like these, or the plain module."""
        reader = self._reader
        if not tensors[0].is_cuda or plain_wanted() or not can_replay(reader.lstm):
            return reader
        fits = reader.fits()
        if fits != self._fits:
            self._forget()
            self._fits = fits
        shape = (tensors[0].shape, tensors[0].dtype, tensors[0].requires_grad)
        if shape not in self._graphs:
            self._seen[shape] += 1
            if self._seen[shape] < OFTEN or not _has_memory():
                return reader
            self._graphs[shape] = capture(_Reader(reader.lstm), tensors, pool=self._pool)
        return self._graphs[shape]

    def _forget(self) -> None:
        """Drop all graphs and their memory."""
        self._graphs.clear()
        self._seen.clear()
        self._pool = torch.cuda.graph_pool_handle()


class _Reader(nn.Module):
    """Tensors in, tensors out, as a graph needs."""

    def __init__(self, lstm: AwdLstm) -> None:
        super().__init__()
        self.lstm = lstm

    def forward(self, vectors: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        output = self.lstm(vectors, list(zip(state[::2], state[1::2], strict=True)))
        return (output.layers[-1], output.top, *(each.detach() for pair in output.end for each in pair))

    def fits(self) -> object:
        """What a graph is made for: addresses of the weights, dropout, precision."""
        addresses = tuple((weight.data_ptr(), weight.requires_grad) for weight in self.lstm.parameters())
        return addresses, self.lstm.dropout_rates(), torch.is_autocast_enabled("cuda")


def _has_memory() -> bool:
    free, total = torch.cuda.mem_get_info()
    return free > FREE * total
