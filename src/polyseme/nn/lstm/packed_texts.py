"""The two LSTM stacks over texts of different lengths, with gradients: what fine-tuning needs.

The steps of packed texts (see `packing`) are cut into blocks that are rectangles but for a little padding, and each layer runs
over a block by `bptt`, both directions at once. The state goes from block to block with its gradients, unless `ElmoLstm.bptt`
ends them there, so results and gradients are those of `ElmoLstm.plain`. One exception: no gradient flows through the cells with
which texts end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.nn.lstm.bptt import Bptt
from polyseme.nn.lstm.layers import LstmLayer, LstmState
from polyseme.nn.lstm.packed_rows import both_directions
from polyseme.nn.packing import last_words
from polyseme.nn.to_device import to_device

if TYPE_CHECKING:
    from polyseme.nn.lstm.elmo_lstm import ElmoLstm

PADDING = 1.25
"""A block has at most this many times the places of its words."""


@dataclass(frozen=True)
class Block:
    """Some steps of packed texts; the texts that go on after it are the first rows."""

    begin: int
    """The first word, counted over all blocks."""
    words: int
    steps: int
    rows: int
    more: int
    """Rows that go on after it."""
    cuts: bool
    """Whether no gradient flows from it to the block before."""
    read: Tensor
    """(steps * rows): the block's word at each place, any one on padding."""
    places: Tensor
    """(words): the place of each word."""
    ends: Tensor
    """(rows - more): the place of the last word of each text that ends here."""


def blocks_of(sizes: list[int], device: torch.device, bptt: int | None = None) -> list[Block]:
    """Cut steps into blocks; another one begins every `bptt` steps."""
    found, begin, first = [], 0, 0
    groups = list(_groups(sizes, bptt))
    for number, group in enumerate(groups):
        steps, rows, words = len(group), group[0], sum(group)
        more = groups[number + 1][0] if number + 1 < len(groups) else 0
        inside = (torch.arange(rows) < torch.tensor(group)[:, None]).flatten()  # (steps * rows): whether a place has a word
        read, places = inside.cumsum(0) - 1, inside.nonzero()[:, 0]
        ends = places[last_words(group)[more:]]
        cuts = bptt is not None and first > 0 and first % bptt == 0
        found.append(Block(begin, words, steps, rows, more, cuts, *(to_device(each, device) for each in (read, places, ends))))
        begin, first = begin + words, first + steps
    return found


def _groups(sizes: list[int], bptt: int | None) -> Iterator[list[int]]:
    group: list[int] = []
    words = 0
    for step, size in enumerate(sizes):
        cuts = bptt is not None and step % bptt == 0
        if group and (cuts or group[0] * (len(group) + 1) > PADDING * (words + size)):
            yield group
            group, words = [], 0
        group.append(size)
        words += size
    yield group


def run_packed_texts(stacks: ElmoLstm, inputs: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
    """Packed words (2, words, dim), the state of all rows -> the outputs of each layer (layers, 2, words, output), end state.

    Matmuls are in the type of `inputs`.
    """
    blocks = blocks_of(sizes, inputs.device, stacks.bptt)
    levels, hiddens, cells = [], [], []
    for level, pair in enumerate(zip(stacks.forward_layers, stacks.backward_layers, strict=True)):
        inputs = F.dropout(inputs, stacks.dropout, stacks.training)
        outputs, hidden, cell = _layer(pair, inputs, blocks, state.hidden[:, level], state.cell[:, level])  # type: ignore[arg-type]
        inputs = outputs + inputs if stacks.config.residual and level > 0 else outputs
        levels.append(inputs)
        hiddens.append(hidden)
        cells.append(cell)
    return torch.stack(levels), LstmState(torch.stack(hiddens, 1), torch.stack(cells, 1))


def _layer(
    pair: tuple[LstmLayer, LstmLayer], inputs: Tensor, blocks: list[Block], hidden: Tensor, cell: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Packed words (2, words, inputs) -> outputs (2, words, output), and the state at the end of each row."""
    weights, clips = both_directions(pair, inputs.dtype), (pair[0].cell_clip, pair[0].projection_clip)
    hidden, cell = hidden.to(inputs.dtype), cell.float()
    unused = hidden[:, :1].detach(), cell[:, :1].detach()  # the start state of sentences that begin within a row: none does
    found, hiddens, cells = [], [], []
    for block in blocks:
        words = inputs[:, block.begin : block.begin + block.words].index_select(1, block.read)
        rows = words.view(2, block.steps, block.rows, -1)
        if block.cuts:
            hidden, cell = hidden.detach(), cell.detach()
        outputs, all_cells, last_cell = Bptt.apply(None, clips, rows, *weights, hidden, cell, *unused)
        flat = outputs.flatten(1, 2)
        found.append(flat.index_select(1, block.places))
        hiddens.append(flat.index_select(1, block.ends))
        cells.append(all_cells.flatten(1, 2).index_select(1, block.ends))
        hidden, cell = outputs[:, -1, : block.more], last_cell[:, : block.more]
    return torch.cat(found, 1), torch.cat(hiddens[::-1], 1), torch.cat(cells[::-1], 1)
