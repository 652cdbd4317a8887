"""The plain loop that the fast paths are compared with: how the earlier PyTorch implementation of ELMo worked.

Padded batches in input order; the characters of *every* token through one convolution per width over all positions; one time
step at a time, with the input matmul inside the step; rows sorted by length within their batch, so that finished sentences drop
out of a step; directions one after the other. It shares only the weights with the fast paths.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.encoders.elmo import Elmo
from polyseme.nn.lstm.layers import LstmLayer


@torch.no_grad()
def embed(model: Elmo, sentences: list[list[str]], batch_size: int = 32) -> list[np.ndarray]:
    """Return the vectors (layers, words, dim) of every sentence, from a zero state."""
    results = []
    for begin in range(0, len(sentences), batch_size):
        results += _batch(model, sentences[begin : begin + batch_size])
    return results


def _batch(model: Elmo, sentences: list[list[str]]) -> list[np.ndarray]:
    device = model.device
    marked = [[model.config.begin, *sentence, model.config.end] for sentence in sentences]
    lengths = [len(sentence) for sentence in marked]
    ids = torch.zeros(len(marked), max(lengths), model.config.characters.max_length, dtype=torch.long)
    for row, sentence in enumerate(marked):
        ids[row, : len(sentence)] = torch.from_numpy(model.speller.encode(sentence)[0])
    order = sorted(range(len(marked)), key=lambda row: -lengths[row])
    ids = ids[order].to(device)
    tokens = _tokens(model, ids.flatten(0, 1)).view(*ids.shape[:2], -1)  # (batch, words, dim)
    sizes = [sum(length > step for length in lengths) for step in range(max(lengths))]
    forward = _direction(model.lstm.stacks()[0], tokens, sizes, model.config.lstm.residual)
    turn = torch.tensor([_reversed(lengths[row], len(sizes)) for row in order], device=device)
    rows = torch.arange(len(marked), device=device)[:, None]
    backward = _direction(model.lstm.stacks()[1], tokens[rows, turn], sizes, model.config.lstm.residual)
    layers = [torch.cat([tokens, tokens], -1)]
    layers += [torch.cat([f, b[rows, turn]], -1) for f, b in zip(forward, backward, strict=True)]
    stack = torch.stack(layers).cpu().numpy()
    back = np.argsort(order)
    return [stack[:, back[row], 1 : lengths[row] - 1].copy() for row in range(len(marked))]


def _reversed(length: int, width: int) -> list[int]:
    return [length - 1 - step if step < length else step for step in range(width)]


def _tokens(model: Elmo, ids: Tensor) -> Tensor:
    network = model.tokens.characters
    x = F.embedding(ids, network.embedding).transpose(1, 2)
    activation = torch.relu if model.config.characters.activation == "relu" else torch.tanh
    found = [activation(F.conv1d(x, filters.weight, filters.bias).max(-1).values) for filters in network.filters]
    x = torch.cat(found, -1)
    for highway in network.highways:
        candidate, gate = F.linear(x, highway.weight, highway.bias).chunk(2, -1)
        gate = torch.sigmoid(gate)
        x = gate * torch.relu(candidate) + (1 - gate) * x
    return model.tokens.projection(x)


def _direction(layers: list[LstmLayer], x: Tensor, sizes: list[int], residual: bool) -> list[Tensor]:
    outputs = []
    for level, layer in enumerate(layers):
        out = _layer(layer, x, sizes)
        x = out + x if level and residual else out
        outputs.append(x)
    return outputs


def _layer(layer: LstmLayer, x: Tensor, sizes: list[int]) -> Tensor:
    dim = layer.bias.shape[0] // 4
    out = x.new_zeros(x.shape[0], x.shape[1], layer.projection_weight.shape[0])
    cell = x.new_zeros(x.shape[0], dim)
    hidden = x.new_zeros(x.shape[0], layer.projection_weight.shape[0])
    for step, size in enumerate(sizes):
        from_input = F.linear(x[:size, step], layer.input_weight)
        from_state = F.linear(hidden[:size].clone(), layer.recurrent_weight, layer.bias)
        i = torch.sigmoid(from_input[:, :dim] + from_state[:, :dim])
        f = torch.sigmoid(from_input[:, dim : 2 * dim] + from_state[:, dim : 2 * dim])
        g = torch.tanh(from_input[:, 2 * dim : 3 * dim] + from_state[:, 2 * dim : 3 * dim])
        o = torch.sigmoid(from_input[:, 3 * dim :] + from_state[:, 3 * dim :])
        c = torch.clamp(i * g + f * cell[:size].clone(), -layer.cell_clip, layer.cell_clip)
        h = F.linear(o * torch.tanh(c), layer.projection_weight)
        h = torch.clamp(h, -layer.projection_clip, layer.projection_clip)
        cell, hidden = cell.clone(), hidden.clone()
        cell[:size], hidden[:size] = c, h
        out[:size, step] = h
    return out
