"""Two causal Transformers, one for each direction: they stand where the two stacks of LSTMs stand, with the same call.

Blocks as in GPT-2 (Radford et al. 2019): the norm before each part, GELU, a last norm on top. Positions are rotary (Su et
al. 2021) against learned ones: nothing to learn, no longest text, and only distances count. Dropout is on what is read and
on what each part adds (Vaswani et al. 2017), never inside the attention, for which no kernel in bounded memory has it on a
processor. A direction reads packed words (see `packing`) in its own reading order, so that both look at what they have
read before and nothing else; padding stands behind the words, where a causal attention never looks.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.nn.config import TransformerConfig
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.packing import padded

WAVELENGTH = 10_000.0  # of the slowest pair of a head, over 2 pi, in words


class TransformerBlock(nn.Module):
    """One layer of one direction: attention and feed-forward part, each added to what went in; `top`: a norm at the end."""

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
        """Glorot-uniform matrices and zero biases; what adds to the stream is smaller, as 2 * layers parts add up."""
        gains = {self.attention_in: 1.0, self.inner_in: 1.0}
        gains |= dict.fromkeys((self.attention_out, self.inner_out), (2 * layers) ** -0.5)
        for linear, gain in gains.items():
            nn.init.xavier_uniform_(linear.weight, gain)
            nn.init.zeros_(linear.bias)

    def attend(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """(rows, steps, dim) -> what each word takes from itself and those before it, (rows, steps, dim)."""
        parts = self.attention_in(x).unflatten(2, (3, self.heads, self.size))
        query, key, value = parts.permute(2, 0, 3, 1, 4)  # (rows, heads, steps, size) each
        found = F.scaled_dot_product_attention(rotate(query, *turns), rotate(key, *turns), value, is_causal=True)
        return self.attention_out(found.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor], dropout: float) -> Tensor:
        """(rows, steps, dim) -> (rows, steps, dim)."""
        x = x + F.dropout(self.attend(self.attention_norm(x), turns), dropout, self.training)
        inner = self.inner_out(F.gelu(self.inner_in(self.inner_norm(x))))
        x = x + F.dropout(inner, dropout, self.training)
        return self.top_norm(x) if self.top_norm is not None else x


class BiTransformer(nn.Module):
    """Two stacks of blocks that never see each other: one reads from the left, one from the right.

    Called as `BiLstm`: vectors of distinct words (distinct, dim), the packed index of each direction into them (2, words),
    the sizes of the steps and a state, which is empty and comes back as it went in. Gives each layer's outputs, packed in
    the direction's own reading order, (layers, 2, words, dim): the stream after each block, normed after the last one,
    as the output layer reads it. A text must come whole.
    """

    def __init__(self, dim: int, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.dropout = 0.0
        """On the words' vectors and on what each part of a block adds, in training only."""
        tops = [level == config.layers - 1 for level in range(config.layers)]
        self.forward_layers = nn.ModuleList(TransformerBlock(dim, config, top=top) for top in tops)
        self.backward_layers = nn.ModuleList(TransformerBlock(dim, config, top=top) for top in tops)

    def stacks(self) -> list[list[TransformerBlock]]:
        """The blocks, forward direction first."""
        return [list(self.forward_layers), list(self.backward_layers)]  # type: ignore[arg-type]

    def zero_state(self, rows: int) -> LstmState:
        """A state of `rows` rows that holds nothing: all that a Transformer knows is the text before it."""
        weight = self.stacks()[0][0].attention_in.weight
        nothing = weight.new_zeros(2, self.config.layers, rows, 0)
        return LstmState(nothing, nothing)

    def forward(self, distinct: Tensor, index: Tensor, sizes: list[int], state: LstmState) -> tuple[Tensor, LstmState]:
        places, packed = (each.to(distinct.device) for each in padded(sizes))
        turns = rotary_angles(len(sizes), self.stacks()[0][0].size, distinct)
        outputs = []
        for direction, blocks in enumerate(self.stacks()):
            x = F.embedding(index[direction][places], distinct)  # (rows, steps, dim)
            x = F.dropout(x, self.dropout, self.training)
            layers = []
            for block in blocks:
                x = block(x, turns, self.dropout)
                layers.append(x.flatten(0, 1).index_select(0, packed))
            outputs.append(torch.stack(layers))
        return torch.stack(outputs, dim=1), state


def rotary_angles(steps: int, size: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles by which the pairs of a head are turned at each step: (steps, size / 2) each.

    The angles are made in double precision: in single, those of the hundred-thousandth word would be wrong by 0.004.
    """
    rates = WAVELENGTH ** -(torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(steps, dtype=torch.float64)[:, None] * rates
    return angles.cos().to(like.device, like.dtype), angles.sin().to(like.device, like.dtype)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn the pairs (number i of the first half, number i of the second) of (rows, heads, steps, size)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
