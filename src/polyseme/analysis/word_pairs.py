"""Two sentences with a word in each to compare: the files, and the cosines of the two words' vectors."""

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
    spans: tuple[int, int]


def word_pair(where: tuple[str | Path, int], texts: tuple[str, str], spans: Sequence[str]) -> WordPair:
    """From two sentences divided by blanks and the numbers of two words, as they stand in line `where` (file, line)."""
    sentences = (texts[0].split(), texts[1].split())
    for words, position in zip(sentences, spans, strict=True):
        if not (position.isdecimal() and int(position) < len(words)):
            what = (
                f"asks for word {position!r} of a sentence of {len(words)} words; expected a number from 0 to {len(words) - 1}"
            )
            raise FormatError(f"{where[0]}:{where[1]}", what)
    return WordPair(sentences, (int(spans[0]), int(spans[1])))


def pair_cosines(encoder: Encoder, pairs: Sequence[WordPair], *, title: str = "embedding") -> dict[str, NDArray[np.float64]]:
    """For each layer, their mean and all in a row: the cosine of each pair's two words, (pairs,)."""
    sentences = [words for pair in pairs for words in pair.sentences]
    spans = [[range(position, position + 1)] for pair in pairs for position in pair.spans]
    vectors = span_vectors(encoder, sentences, spans, title=title)
    return {name: cosines(view[0::2], view[1::2]) for name, view in layer_views(vectors).items()}
