"""Two causal Transformers, one per direction: a drop-in replacement for the two LSTM stacks.

Blocks as in GPT-2 (Radford et al. 2019): pre-norm, GELU, a final norm. Positions are rotary (Su et al. 2021), not learned: no
parameters, no maximum length, and only distances count. Dropout applies to the input and to what each sublayer adds (Vaswani
et al. 2017), but not inside attention, where no memory-efficient CPU kernel has it. Each direction reads packed words (see
`packing`) in its own order, so that it attends only to what it has read. Padding is behind the words, where causal attention
never looks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.config import TransformerConfig
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.packing import padded

WAVELENGTH = 10_000.0  # of the slowest pair of a head, divided by 2 pi, in words


class TransformerBlock(nn.Module):
    """One layer of one direction: attention and feed-forward layer, each with a residual; `top`: with a final norm."""

    def __init__(self, dim: int, config: TransformerConfig, *, top: bool) -> None:
        super().__init__()
        self.heads, self.size = config.heads, config.head_size(dim)
        self.attention_norm = nn.LayerNorm(dim)
        self.attention_in = nn.Linear(dim, 3 * dim)
        self.attention_out = nn.Linear(dim, dim)
        self.inner_norm = nn.LayerNorm(dim)
        self.inner_in = nn.Linear(dim, config.feedforward_size)
        self.inner_out = nn.Linear(config.feedforward_size, dim)
        self.top_norm = nn.LayerNorm(dim) if top else None
        self.reset_parameters(config.layers)

    def reset_parameters(self, layers: int) -> None:
        """Glorot-uniform matrices and zero biases; output matrices are scaled down, since 2 * layers of them add up."""
        gains = {self.attention_in: 1.0, self.inner_in: 1.0}
        gains |= dict.fromkeys((self.attention_out, self.inner_out), (2 * layers) ** -0.5)
        for linear, gain in gains.items():
            nn.init.xavier_uniform_(linear.weight, gain)
            nn.init.zeros_(linear.bias)

    def attend(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Causal self-attention: (rows, steps, dim) -> (rows, steps, dim)."""
        parts = self.attention_in(x).unflatten(2, (3, self.heads, self.size))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # (rows, heads, steps, size) each
        found = F.scaled_dot_product_attention(rotate(query, *angles), rotate(key, *angles), value, is_causal=True)
        return self.attention_out(found.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor], dropout: float) -> Tensor:
        """(rows, steps, dim) -> (rows, steps, dim)."""
        x = x + F.dropout(self.attend(self.attention_norm(x), angles), dropout, self.training)
        inner = self.inner_out(F.gelu(self.inner_in(self.inner_norm(x))))
        x = x + F.dropout(inner, dropout, self.training)
        return self.top_norm(x) if self.top_norm is not None else x


class BiTransformer(nn.Module):
    """Two independent stacks of blocks: one reads from the left, one from the right.

    Called like `ElmoLstm`, with an empty state that is returned unchanged. Takes vectors of distinct words (distinct, dim), the
    packed index of each direction into them (2, words) and the sizes of the steps. Returns the output of each block, packed in
    the direction's own reading order, (layers, 2, words, dim). A text must not be split.
    """

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = 0.0
        """On word vectors and on what each sublayer adds, in training only."""
        tops = [level == config.layers - 1 for level in range(config.layers)]
        self.forward_layers = nn.ModuleList(TransformerBlock(dim, config, top=top) for top in tops)
        self.backward_layers = nn.ModuleList(TransformerBlock(dim, config, top=top) for top in tops)

    def stacks(self) -> list[list[TransformerBlock]]:
        """Return the blocks, forward direction first."""
        return [list(self.forward_layers), list(self.backward_layers)]  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> LstmState:
        """Return an empty state of `rows` rows: a Transformer carries empty over."""
        weight = self.stacks()[0][0].attention_in.weight
        empty = weight.new_zeros(2, self.config.layers, rows, 0)
        return LstmState(empty, empty)

    def forward(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        index_of_padded, packed = (each.to(distinct.device) for each in padded(sizes))
        angles = rotary_angles(len(sizes), self.stacks()[0][0].size, distinct)
        outputs = []
        for direction, blocks in enumerate(self.stacks()):
            x = F.embedding(index[direction][index_of_padded], distinct)  # (rows, steps, dim)
            x = F.dropout(x, self.dropout, self.training)
            layers = []
            for block in blocks:
                x = block(x, angles, self.dropout)
                layers.append(x.flatten(0, 1).index_select(0, packed))
            outputs.append(torch.stack(layers))
        return torch.stack(outputs, dim=1), state


def rotary_angles(steps: int, size: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotation of the pairs of a head at each step: (steps, size / 2) each.

    Computed in double precision: in single, the angles of word 100,000 would be off by 0.004.
    """
    rates = WAVELENGTH ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(steps, dtype=torch.float64)[:, None] * rates
    return angles.cos().to(like.device, like.dtype), angles.sin().to(like.device, like.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the pairs (element i of the first half, element i of the second) of (rows, heads, steps, size)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
