"""How numbers are laid out in foreign files, as data that is read in both directions.

A `Rule` ties foreign arrays (names and shapes) to tensors of ours through a `Way`, a change of layout that can be
undone. The same list of rules checks a file, reads it and writes it, so reading and writing cannot drift apart; the
lists themselves, one for each format, stand in `names`.
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
class Way:
    """A change of layout: `read` takes the foreign arrays of a rule and gives ours, `write` undoes it."""

    read: Callable[..., Tensors]
    write: Callable[..., Tensors]


@dataclass(frozen=True)
class Rule:
    """Foreign arrays, the tensors of ours that hold the same numbers, and the way between them."""

    theirs: Mapping[str, Shape]
    ours: tuple[str, ...]
    way: Way


def check(rules: Iterable[Rule], found: Mapping[str, Shape], where: str | Path, thing: str = "dataset") -> None:
    """Every foreign array must be there in exactly the shape of its rule; all that is wrong is told at once."""
    expected = {name: shape for rule in rules for name, shape in rule.theirs.items()}
    problems = [f"lacks the {thing} {name} {_told(shape)}" for name, shape in expected.items() if name not in found]
    problems += [
        f"{thing} {name} has shape {_told(found[name])}, expected {_told(shape)}"
        for name, shape in expected.items()
        if name in found and tuple(found[name]) != shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more problems)" if len(problems) > 3 else ""
        raise FormatError(where, "; ".join(problems[:3]) + more)


def to_ours(rules: Iterable[Rule], get: Callable[[str], Tensor]) -> dict[str, Tensor]:
    """Foreign arrays -> our tensors, one rule at a time, so that a big file never stands in memory twice."""
    result: dict[str, Tensor] = {}
    for rule in rules:
        tensors = rule.way.read(*(get(name) for name in rule.theirs))
        result.update((name, value.contiguous()) for name, value in zip(rule.ours, tensors, strict=True))
    return result


def to_theirs(rules: Iterable[Rule], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Our tensors -> foreign arrays."""
    result: dict[str, Tensor] = {}
    for rule in rules:
        tensors = rule.way.write(*(ours[name].detach().float().cpu() for name in rule.ours))
        result.update(zip(rule.theirs, tensors, strict=True))
    return result


def kernel(inputs: int) -> Way:
    """One matrix (inputs + recurrent, 4 dim) with TensorFlow's gates <-> an input and a recurrent matrix of ours."""
    return Way(  # the gates are put in order before the matrix is turned, which takes half the time of after
        lambda matrix: tuple(part.T for part in _gates(matrix, 1).split([inputs, len(matrix) - inputs])),
        lambda left, right: (_gates(torch.cat([left.T, right.T]), 1),),
    )


def _told(shape: Iterable[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _gates(blocks: Tensor, axis: int = 0) -> Tensor:
    """TensorFlow's gates i, j, f, o <-> PyTorch's i, f, g, o (j is g): the middle blocks change places."""
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


SAME = Way(lambda array: (array,), lambda tensor: (tensor,))
TRANSPOSED = Way(lambda matrix: (matrix.T,), lambda tensor: (tensor.T,))
UNPADDED = Way(  # a character table without the row of zeros for absent words, which stands first in ours
    lambda table: (torch.cat([table.new_zeros(1, table.shape[1]), table]),), lambda tensor: (tensor[1:],)
)
FILTER = Way(  # (1, width, dim, count) <-> (count, dim, width)
    lambda array: (array[0].permute(2, 1, 0),), lambda tensor: (tensor.permute(2, 1, 0)[None],)
)
STACKED_TRANSPOSED = Way(  # two matrices on one another
    lambda upper, lower: (torch.cat([upper, lower], 1).T,), lambda tensor: tuple(part.T for part in tensor.chunk(2))
)
STACKED = Way(lambda upper, lower: (torch.cat([upper, lower]),), lambda tensor: tensor.chunk(2))
FORGET_APART = Way(  # TensorFlow adds 1 to the forget gate when it runs; ours has it in the bias
    lambda bias: (_shift_forget(_gates(bias), 1.0),), lambda tensor: (_gates(_shift_forget(tensor, -1.0)),)
)
KEEPING_GATE = Way(  # a highway whose gate is the share of the input; ours is the share of the change
    lambda rows: (_negate_gate(rows),), lambda tensor: (_negate_gate(tensor),)
)
