"""Whole examples: one text or two become one vector, in each system's own way. What the ways share.

A task that is nothing but an encoder and a small head (Howard and Ruder 2018, Radford et al. 2018, Devlin et al. 2019) asks for
no vectors of words. Each encoder reads an example its own way (`prepare_sequence`, `encode_sequence`): BERT and GPT
put special tokens between two texts and around them, ULMFiT its end mark, and all others read each text alone. Windows cannot help
here, since there is one vector: where a network has a longest text, the longer of two texts loses its end, or, where the first
ends in what matters (a question behind its context), its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from polyseme.base.errors import UsageError

Text = TypeVar("Text")


@dataclass(frozen=True)
class SequenceOutput:
    """What an encoder makes of whole examples."""

    vectors: Tensor
    """(examples, dim)."""
    lm_loss: Tensor | None = None
    """The mean loss of telling each next word or piece of the same texts, where it was asked for."""


def split_texts(examples: Sequence[Sequence[Text]]) -> list[list[Text]]:
    """Examples of one text or two -> all first texts, and all second ones.

    >>> split_texts([["a", "b"], ["c", "d"]])
    [['a', 'c'], ['b', 'd']]
    """
    counts = {len(texts) for texts in examples}
    if not counts:
        raise UsageError("a batch needs at least one example; got none")
    if len(counts) > 1 or not counts <= {1, 2}:
        given = ", ".join(map(str, sorted(counts)))
        raise UsageError(f"whole examples have one text each, or two each; here are some with {given}")
    return [[texts[slot] for texts in examples] for slot in range(counts.pop())]


def combine_pair(vectors: Sequence[Tensor]) -> Tensor:
    """Vectors of texts that were read alone, (examples, dim) each -> themselves, or [u; v; |u - v|; u * v] of two."""
    if len(vectors) == 1:
        return vectors[0]
    u, v = vectors
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def truncate(texts: Sequence[list[int]], room: int, *, keep_end: bool = False) -> list[list[int]]:
    """Texts that have `room` places together: while there are more, the longest loses its last piece, of equals the later.

    `keep_end`: what the first text loses is its beginning.

    >>> truncate([[1, 2, 3, 4], [5, 6]], 4), truncate([[1, 2, 3, 4], [5, 6]], 4, keep_end=True)
    ([[1, 2], [5, 6]], [[3, 4], [5, 6]])
    """
    lengths = [len(text) for text in texts]
    while sum(lengths) > room:
        longest = max(range(len(lengths)), key=lambda slot: (lengths[slot], slot))
        others = max((length for slot, length in enumerate(lengths) if slot != longest), default=0)
        lengths[longest] -= min(max(lengths[longest] - others, 1), sum(lengths) - room)
    found = [text[:length] for text, length in zip(texts, lengths, strict=True)]
    if keep_end and found:
        found[0] = texts[0][len(texts[0]) - lengths[0] :]
    return found
