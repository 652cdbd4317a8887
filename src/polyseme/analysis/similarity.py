"""Similarity of two words in their sentences: Spearman's correlation of human scores with the cosines of each layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.word_pairs import WordPair, pair_cosines, word_pair
from polyseme.base.errors import FormatError
from polyseme.encoders.base import Encoder
from polyseme.metrics.correlation import spearman
from polyseme.text.labelled.numbered_lines import numbered_lines

COLUMNS = ("word1", "index1", "sentence1", "word2", "index2", "sentence2", "score")


@dataclass(frozen=True)
class Similarities:
    """Pairs of words in context with human scores."""

    pairs: list[WordPair]
    scores: list[float]


def read_similarities(path: str | Path) -> Similarities:
    """Read seven tab-separated columns with the header word1 index1 sentence1 word2 index2 sentence2 score.

    Sentences are split at spaces; an index is the position of the word, from 0.
    """
    lines = [(number, line.split("\t")) for number, line in numbered_lines(path) if line.strip()]
    if not lines or tuple(lines[0][1]) != COLUMNS:
        found = "\t".join(lines[0][1])[:60] if lines else ""
        raise FormatError(path, f"begins with {found!r}; expected the header {' '.join(COLUMNS)}, separated by tabs")
    pairs, scores = [], []
    for number, row in lines[1:]:
        if len(row) != len(COLUMNS):
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; expected {len(COLUMNS)} separated by tabs")
        pairs.append(word_pair((path, number), (row[2], row[5]), (row[1], row[4])))
        scores.append(_number(path, number, row[6]))
    if len(pairs) < 2:
        raise FormatError(path, f"has {len(pairs)} pairs; a correlation needs at least 2")
    return Similarities(pairs, scores)


def _number(path: str | Path, number: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise FormatError(f"{path}:{number}", f"has the score {text[:20]!r}; expected a number")
    return value


def probe_similarity(encoder: Encoder, data: Similarities) -> ProbeResult:
    """Return the correlation for each layer and for combinations of layers; NaN if all cosines are equal."""
    cosines = pair_cosines(encoder, data.pairs)
    rows = {name: {"Spearman": spearman(values, data.scores)} for name, values in cosines.items()}
    return ProbeResult(
        title=f"similarity of {len(data.pairs):,} pairs of words in context",
        measures=("Spearman",),
        rows=rows,
        facts={"pairs": len(data.pairs)},
    )
