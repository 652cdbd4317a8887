"""Sequence representations: one vector for an example of one text or of two (a sentence pair).

A linear head on an encoder (Howard and Ruder 2018, Radford et al. 2018, Devlin et al. 2019) needs no vectors of words. Each
encoder reads an example in its own way (`Encoder.prepare_sequence`, `Encoder.encode_sequence`): BERT and GPT add special
tokens around and between the texts, ULMFiT its end token, and all others read each text alone. Windows cannot help here. Where
a network has a maximum length, the longer of two texts is truncated at its end, or with `keep_end` (a question behind its
context) the first at its beginning.
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
