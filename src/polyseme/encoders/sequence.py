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
    """The output of `Encoder.encode_sequence`."""

    vectors: Tensor
    """(examples, dim)."""
    lm_loss: Tensor | None = None
    """The mean loss of predicting each next word or subword of the texts, where `predict` asked for it."""


def split_texts(examples: Sequence[Sequence[Text]]) -> list[list[Text]]:
    """Split examples of one text or two into all first texts, and all second ones.

    >>> split_texts([["a", "b"], ["c", "d"]])
    [['a', 'c'], ['b', 'd']]
    """
    counts = {len(texts) for texts in examples}
    if not counts:
        raise UsageError("a batch needs at least one example; got none")
    if len(counts) > 1 or not counts <= {1, 2}:
        given = ", ".join(map(str, sorted(counts)))
        raise UsageError(f"examples have one text each, or two each; got examples with {given}")
    return [[texts[slot] for texts in examples] for slot in range(counts.pop())]


def combine_pair(vectors: Sequence[Tensor]) -> Tensor:
    """Combine vectors of texts that were read alone, (examples, dim) each: of a pair [u; v; |u - v|; u * v]."""
    if len(vectors) == 1:
        return vectors[0]
    u, v = vectors
    return torch.cat([u, v, (u - v).abs(), u * v], dim=1)


def truncate(texts: Sequence[list[int]], room: int, *, keep_end: bool = False) -> list[list[int]]:
    """Truncate texts to `room` subwords together: the longest loses its last subword, of equals the later, until they fit.

    `keep_end`: the first text loses its beginning instead.

    >>> truncate([[1, 2, 3, 4], [5, 6]], 4), truncate([[1, 2, 3, 4], [5, 6]], 4, keep_end=True)
    ([[1, 2], [5, 6]], [[3, 4], [5, 6]])
    """
    lengths = [len(text) for text in texts]
    while sum(lengths) > room:
        longest = max(range(len(lengths)), key=lambda slot: (lengths[slot], slot))
        others = max((length for slot, length in enumerate(lengths) if slot != longest), default=0)
        lengths[longest] -= min(max(lengths[longest] - others, 1), sum(lengths) - room)
    result = [text[:length] for text, length in zip(texts, lengths, strict=True)]
    if keep_end and result:
        result[0] = texts[0][len(texts[0]) - lengths[0] :]
    return result
