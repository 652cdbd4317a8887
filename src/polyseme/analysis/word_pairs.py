"""Pairs of words, each in its sentence, and the cosines of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.span_vectors import cosines, layer_views, span_vectors
from polyseme.base.errors import FormatError
from polyseme.encoders.base import Encoder


@dataclass(frozen=True, slots=True)
class WordPair:
    """Two words, each in its sentence."""

    sentences: tuple[list[str], list[str]]
    positions: tuple[int, int]


def word_pair(where: tuple[str | Path, int], texts: tuple[str, str], positions: Sequence[str]) -> WordPair:
    """Parse two sentences split at spaces and the positions of two words; `where`: file and line, for errors."""
    sentences = (texts[0].split(), texts[1].split())
    for words, position in zip(sentences, positions, strict=True):
        if not (position.isdecimal() and int(position) < len(words)):
            what = (
                f"asks for word {position!r} of a sentence of {len(words)} words; expected a number from 0 to {len(words) - 1}"
            )
            raise FormatError(f"{where[0]}:{where[1]}", what)
    return WordPair(sentences, (int(positions[0]), int(positions[1])))


def pair_cosines(encoder: Encoder, pairs: Sequence[WordPair], *, title: str = "embedding") -> dict[str, NDArray[np.float64]]:
    """Return the cosine of each pair of words, (pairs,): each layer, their mean, their concatenation, the top with a window."""
    sentences = [words for pair in pairs for words in pair.sentences]
    spans = [[range(position, position + 1)] for pair in pairs for position in pair.positions]
    vectors = span_vectors(encoder, sentences, spans, around=True, title=title)
    return {name: cosines(view[0::2], view[1::2]) for name, view in layer_views(vectors, around=True).items()}
