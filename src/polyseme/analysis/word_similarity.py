"""Similarity of two words without context: Spearman's correlation with human scores (WordSim-353, SimLex-999 and similar).

Each word is embedded alone. A missing word is looked up in any case; a pair with an unknown word is skipped and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.span_vectors import cosines, layer_views
from polyseme.analysis.words import isolated_word_vectors
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.base import Encoder
from polyseme.metrics.correlation import spearman
from polyseme.text.labelled.numbered_lines import numbered_lines


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of words with human scores."""

    pairs: list[tuple[str, str]]
    scores: list[float]


def read_scored_pairs(path: str | Path) -> ScoredPairs:
    """Read lines of two words and a score, separated by tabs, commas, semicolons or spaces, perhaps under a header.

    The score is the first number after the words: SimLex-999 has the part of speech before it, and more numbers after it.
    """
    pairs, scores, header = [], [], False
    for number, line in numbered_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        row = _columns(line)
        score = next((value for value in map(_number, row[2:]) if math.isfinite(value)), math.nan)
        if math.isfinite(score):
            pairs.append((row[0], row[1]))
            scores.append(score)
        elif pairs or header or len(row) < 3:
            raise FormatError(f"{path}:{number}", f"has {line[:40]!r}; expected two words and a score, separated by tabs")
        else:
            header = True
    if len(pairs) < 2:
        raise FormatError(path, f"has {len(pairs)} pairs; a correlation needs at least 2")
    return ScoredPairs(pairs, scores)


def _columns(line: str) -> list[str]:
    for separator in "\t;,":
        if line.count(separator) >= 2:
            return [part.strip() for part in line.split(separator)]
    return line.split()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def probe_words(encoder: Encoder, data: ScoredPairs) -> ProbeResult:
    """Return the correlation for each layer, on the pairs whose words the model knows."""
    words = list(dict.fromkeys(word for pair in data.pairs for word in pair))
    vectors = isolated_word_vectors(encoder, words)
    unknown = [word for word in words if word not in vectors]
    kept = [row for row, (one, two) in enumerate(data.pairs) if one in vectors and two in vectors]
    if len(kept) < 2:
        raise PolysemeError(f"the model knows both words of {len(kept)} pairs of {len(data.pairs)}; a correlation needs 2")
    number = {word: row for row, word in enumerate(vectors)}
    stack = np.stack(list(vectors.values()), axis=1)  # (layers, words, dim)
    first, second = ([number[data.pairs[row][side]] for row in kept] for side in (0, 1))
    scores = [data.scores[row] for row in kept]
    rows = {
        name: {"Spearman": spearman(cosines(view[first], view[second]), scores)} for name, view in layer_views(stack).items()
    }
    return ProbeResult(
        title=f"similarity of {len(kept):,} pairs of words",
        measures=("Spearman",),
        rows=rows,
        facts={
            "pairs": len(data.pairs),
            "pairs_left_out": len(data.pairs) - len(kept),
            "unknown_words": len(unknown),
            "such_as": ", ".join(unknown[:5]) or None,
        },
    )
