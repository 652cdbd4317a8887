"""The layout of weights in foreign files, as data that works in both directions.

A `WeightMapping` ties foreign arrays (names and shapes) to tensors of ours through a `LayoutTransform`, which can be
inverted. The same list of mappings checks a file, reads it and writes it, so reading and writing cannot drift apart.
The lists, one for each format, are in `weight_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from polyseme.base.errors import FormatError

Shape = tuple[int, ...]
Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class LayoutTransform:
    """A change of layout: `read` turns foreign arrays into ours, `write` inverts it."""

    read: Callable[..., Tensors]
    write: Callable[..., Tensors]


@dataclass(frozen=True)
class WeightMapping:
    """Foreign arrays, our tensors with the same numbers, and the transform between them."""

    foreign: Mapping[str, Shape]
    ours: tuple[str, ...]
    transform: LayoutTransform


def check_shapes(
    mappings: Iterable[WeightMapping], found: Mapping[str, Shape], where: str | Path, thing: str = "dataset"
) -> None:
    """Every foreign array must be there in exactly the shape of its mapping; all that is wrong is told at once."""
    expected = {name: shape for mapping in mappings for name, shape in mapping.foreign.items()}
    problems = [f"lacks the {thing} {name} {_shape_text(shape)}" for name, shape in expected.items() if name not in found]
    problems += [
        f"{thing} {name} has shape {_shape_text(found[name])}, expected {_shape_text(shape)}"
        for name, shape in expected.items()
        if name in found and tuple(found[name]) != shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more problems)" if len(problems) > 3 else ""
        raise FormatError(where, "; ".join(problems[:3]) + more)


def to_polyseme(mappings: Iterable[WeightMapping], get: Callable[[str], Tensor]) -> dict[str, Tensor]:
    """Convert foreign arrays to our tensors, one mapping at a time, so that a big file is never in memory twice."""
    result: dict[str, Tensor] = {}
    for mapping in mappings:
        tensors = mapping.transform.read(*(get(name) for name in mapping.foreign))
        result.update((name, value.contiguous()) for name, value in zip(mapping.ours, tensors, strict=True))
    return result


def to_foreign(mappings: Iterable[WeightMapping], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    result: dict[str, Tensor] = {}
    for mapping in mappings:
        tensors = mapping.transform.write(*(ours[name].detach().float().cpu() for name in mapping.ours))
        result.update(zip(mapping.foreign, tensors, strict=True))
    return result


def lstm_kernel(inputs: int) -> LayoutTransform:
    """Split one matrix (inputs + recurrent, 4 dim) with TensorFlow's gates into our input and recurrent matrices."""
    return LayoutTransform(  # reordering the gates before transposing takes half the time
        lambda matrix: tuple(part.T for part in _gates(matrix, 1).split([inputs, len(matrix) - inputs])),
        lambda left, right: (_gates(torch.cat([left.T, right.T]), 1),),
    )


def _shape_text(shape: Iterable[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _gates(blocks: Tensor, axis: int = 0) -> Tensor:
    """Convert TensorFlow's gates i, j, f, o to PyTorch's i, f, g, o (j is g), or back: swap the middle blocks."""
    i, second, third, o = blocks.chunk(4, axis)
    return torch.cat([i, third, second, o], axis)


def _shift_forget(bias: Tensor, by: float) -> Tensor:
    """Add to the forget gate of a bias in PyTorch's order."""
    dim = len(bias) // 4
    bias = bias.clone()
    bias[dim : 2 * dim] += by
    return bias


def _negate_gate(rows: Tensor) -> Tensor:
    candidate, gate = rows.chunk(2)
    return torch.cat([candidate, -gate])


IDENTITY = LayoutTransform(lambda array: (array,), lambda tensor: (tensor,))
COLUMN = LayoutTransform(lambda table: (table[:, 0],), lambda tensor: (tensor[:, None],))
TRANSPOSED = LayoutTransform(lambda matrix: (matrix.T,), lambda tensor: (tensor.T,))
WITHOUT_PADDING_ROW = LayoutTransform(  # our character table has a first row of zeros, for padding
    lambda table: (torch.cat([table.new_zeros(1, table.shape[1]), table]),), lambda tensor: (tensor[1:],)
)
FILTER = LayoutTransform(  # (1, width, dim, count) <-> (count, dim, width)
    lambda array: (array[0].permute(2, 1, 0),), lambda tensor: (tensor.permute(2, 1, 0)[None],)
)
STACKED_TRANSPOSED = LayoutTransform(  # two matrices, stacked
    lambda upper, lower: (torch.cat([upper, lower], 1).T,), lambda tensor: tuple(part.T for part in tensor.chunk(2))
)
STACKED = LayoutTransform(lambda upper, lower: (torch.cat([upper, lower]),), lambda tensor: tensor.chunk(2))
FORGET_BIAS = LayoutTransform(  # TensorFlow adds 1 to the forget gate at run time; our bias includes it
    lambda bias: (_shift_forget(_gates(bias), 1.0),), lambda tensor: (_gates(_shift_forget(tensor, -1.0)),)
)
CARRY_GATE = LayoutTransform(  # a highway whose gate weights the input; ours weights the transform
    lambda rows: (_negate_gate(rows),), lambda tensor: (_negate_gate(tensor),)
)
