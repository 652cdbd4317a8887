"""ELMo's character CNN: convolutions over a word's characters, max pooling, highway layers.

Kim et al. 2016, "Character-aware neural language models"; sizes as in Peters et al. 2018. It runs on *distinct* words: the
encoder gathers the words of a text from them. The convolutions have two equal implementations: each width by itself over all
positions (`convolve`, plain), and all widths as one matmul over windows as wide as the widest filter, which skips windows of
padding (on a GPU: `char_cnn_triton`). The padding character has a trained vector that counts in the maximum, so padding may be
cut, but one window of it must stay.
"""

from __future__ import annotations

import functools
import importlib.util

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.config import CharactersConfig
from polyseme.nn.threads import run_parallel
from polyseme.nn.to_device import to_device

BLOCK_CPU, BLOCK_CUDA = 64, 2048  # words per block: what fits a core's cache, and what fills a GPU


class Highway(nn.Module):
    """y = t * relu(a) + (1 - t) * x, with a and t from one matrix (rows: a, then the gate t)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2 * dim, dim))
        self.bias = nn.Parameter(torch.zeros(2 * dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        with torch.no_grad():
            self.bias[dim:] = -2.0  # at first, carry the input

    def forward(self, x: Tensor) -> Tensor:
        candidate, gate = F.linear(x, self.weight, self.bias).chunk(2, dim=1)
        return torch.addcmul(x, torch.sigmoid(gate), torch.relu(candidate) - x)


class CharFilters(nn.Module):
    """All filters of one width: weight (count, dim, width), bias (count,)."""

    def __init__(self, dim: int, count: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, dim, width).uniform_(-0.05, 0.05))
        self.bias = nn.Parameter(torch.zeros(count))

    def padded(self, width: int) -> Tensor:
        """Return the filters zero-padded to a window of `width` characters: (count, width * dim)."""
        return F.pad(self.weight, (0, width - self.weight.shape[2])).transpose(1, 2).flatten(1)


def fused_fits(ids: Tensor, config: CharactersConfig) -> bool:
    """Whether the fused kernels apply: on a GPU, under autocast, with windows that fit shared memory."""
    fits = config.widest * config.dim <= 128 and config.max_length < 256
    return ids.is_cuda and fits and torch.is_autocast_enabled("cuda") and importlib.util.find_spec("triton") is not None


class CharCnn(nn.Module):
    """Character ids (words, max_length) and lengths (words,) -> vectors (words, number of filters)."""

    def __init__(self, config: CharactersConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Parameter(torch.empty(config.symbols, config.dim).uniform_(-1, 1))
        self.convolutions = nn.ModuleList(CharFilters(config.dim, count, width) for width, count in config.filters)
        self.highways = nn.ModuleList(Highway(config.output_size) for _ in range(config.highway_layers))

    @property
    def filters(self) -> list[CharFilters]:
        """Return the filters by width, in the order of the config."""
        return list(self.convolutions)  # type: ignore[arg-type]

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        if bool((lengths[1:] >= lengths[:-1]).all()):  # words of similar length together need little padding
            return self._finish(self._sorted(ids, lengths))
        lengths, order = torch.sort(lengths, stable=True)
        order = order.to(ids.device)
        x = self._sorted(ids.index_select(0, order), lengths)
        return self._finish(x.index_select(0, torch.argsort(order)))

    def _finish(self, x: Tensor) -> Tensor:
        """Bias, activation and highway layers, after max pooling."""
        x = x + torch.cat([filters.bias for filters in self.filters])
        x = torch.relu(x) if self.config.activation == "relu" else torch.tanh(x)
        for highway in self.highways:
            x = highway(x)
        return x

    def _sorted(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Max-pooled convolutions, without bias, of words sorted by length."""
        weight = torch.cat([filters.padded(self.config.widest) for filters in self.filters])
        found = []
        if fused_fits(ids, self.config):
            room = self.config.max_length - self.config.widest  # longest word that leaves a window of padding
            short = int(torch.searchsorted(lengths, room, right=True))
            found.append(self._fused(ids[:short], lengths[:short], weight))
            ids, lengths = ids[short:], lengths[short:]
        return torch.cat(found + self._blocks(ids, lengths, weight))

    def _blocks(self, ids: Tensor, lengths: Tensor, weight: Tensor) -> list[Tensor]:
        """As `_block` for all words, block by block; without gradients on a CPU, each thread has blocks of its own."""
        size = BLOCK_CUDA if ids.is_cuda else BLOCK_CPU
        blocks = [slice(begin, begin + size) for begin in range(0, len(ids), size)]

        def run(some: list[slice]) -> list[Tensor]:
            return [self._block(ids[rows], int(lengths[rows][-1]), weight) for rows in some]

        if ids.is_cuda or torch.is_grad_enabled() or torch.is_autocast_enabled("cpu"):
            return run(blocks)
        count = max(1, min(torch.get_num_threads(), len(blocks)))
        done = run_parallel([functools.partial(torch.no_grad()(run), blocks[number::count]) for number in range(count)])
        return [done[number % count][number // count] for number in range(len(blocks))]

    def _fused(self, ids: Tensor, lengths: Tensor, weight: Tensor) -> Tensor:
        """As `_block` for all words, as one kernel; words have at most `max_length - widest` characters."""
        from polyseme.nn.char_cnn_triton import WORDS, MaxPooledConvolution

        kind = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else weight.dtype
        if not len(ids):
            return weight.new_empty(0, len(weight), dtype=kind)
        longest = [*lengths[WORDS - 1 :: WORDS].tolist(), int(lengths[-1])][: -(-len(ids) // WORDS)]
        positions = to_device(torch.tensor([length + 1 for length in longest], dtype=torch.int32), ids.device)
        x = F.embedding(ids[:, : longest[-1] + self.config.widest], self.embedding).to(kind)
        found: Tensor = MaxPooledConvolution.apply(x, weight.to(kind), positions, longest[-1] + 1)
        return found

    def _block(self, ids: Tensor, longest: int, weight: Tensor) -> Tensor:
        """Max-pooled convolutions of words of at most `longest` characters, without bias: (words, number of filters)."""
        widest = self.config.widest
        if longest + widest > self.config.max_length:  # no window of padding behind the longest word
            return self.convolve(ids)
        # the window at `longest` is all padding, and equals every later one
        return _max_pooled(F.embedding(ids[:, : longest + widest], self.embedding), weight, widest)

    def convolve(self, ids: Tensor) -> Tensor:
        """The plain implementation: each width by itself, over all positions."""
        x = F.embedding(ids, self.embedding)
        widths = [filters.weight.shape[2] for filters in self.filters]
        found = [_max_pooled(x, filters.padded(width), width) for filters, width in zip(self.filters, widths, strict=True)]
        return torch.cat(found, dim=1)


def _max_pooled(x: Tensor, weight: Tensor, width: int) -> Tensor:
    """Characters (words, characters, dim), filters (count, width * dim) -> their maximum over positions, (words, count).

    A matmul over windows, not `conv1d`: on a GPU that would use TF32 by default.
    """
    windows = x.unfold(1, width, 1).transpose(2, 3)  # (words, positions, width, dim)
    scores = windows.flatten(2).flatten(0, 1) @ weight.T
    return scores.view(len(x), windows.shape[1], -1).amax(1)
