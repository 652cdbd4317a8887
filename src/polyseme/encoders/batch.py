"""What goes into an encoder and what comes out of it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

Sentence = str | Sequence[str]
"""A string, which the model splits into words, or a list of words."""


@dataclass(frozen=True)
class Batch:
    """The input of `Encoder.forward`, made by `Encoder.prepare`."""

    inputs: Any
    """The encoder's own tensors."""
    mask: Tensor
    """(batch, words): True where a word is."""
    lengths: Tensor
    """(batch,): words of each sentence."""


@dataclass(frozen=True)
class Layers:
    """The output of `Encoder.forward`."""

    states: Tensor
    """(layers, batch, words, dim), zero on padding."""
    mask: Tensor
    """(batch, words): True where a word is."""
    ends: Tensor | None = None
    """(layers, batch, 2, dim): the vectors of the begin and end tokens, where the encoder has them."""
    summary: Tensor | None = None
    """(batch, dim): one vector per text, where the encoder has one."""


def whole_number(value: object) -> int | None:
    """Return an integer of any library as a Python int, and None for anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
