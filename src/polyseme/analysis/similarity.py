"""Similarity of two words: Spearman's correlation of human scores with the cosines of each layer.

The words stand in their sentences, or alone (WordSim-353, SimLex-999 and similar). Alone, each word is embedded by itself; a
missing word is looked up in any case, and a pair with an unknown word is skipped and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.span_vectors import cosines, layer_views
from polyseme.analysis.word_pairs import WordPair, pair_cosines, word_pair
from polyseme.analysis.words import isolated_word_vectors
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.base import Encoder
from polyseme.metrics.correlation import spearman
from polyseme.text.labelled.numbered_lines import numbered_lines

COLUMNS = ("word1", "index1", "sentence1", "word2", "index2", "sentence2", "score")
Pair = TypeVar("Pair")


@dataclass(frozen=True)
class ScoredPairs(Generic[Pair]):
    """Pairs of words, in context or alone, with human scores."""

    pairs: list[Pair]
    scores: list[float]

    @classmethod
    def of(cls, path: str | Path, rows: Iterable[tuple[Pair, float]]) -> ScoredPairs[Pair]:
        data = list(rows)
        if len(data) < 2:
            raise FormatError(path, f"has {len(data)} pairs; a correlation needs at least 2")
        return cls([pair for pair, _ in data], [score for _, score in data])


def read_similarities(path: str | Path) -> ScoredPairs[WordPair]:
    """Read seven tab-separated columns with the header word1 index1 sentence1 word2 index2 sentence2 score.

    Sentences are split at spaces; an index is the position of the word, from 0.
    """
    lines = [(number, line.split("\t")) for number, line in numbered_lines(path) if line.strip()]
    if not lines or tuple(lines[0][1]) != COLUMNS:
        found = "\t".join(lines[0][1])[:60] if lines else ""
        raise FormatError(path, f"begins with {found!r}; expected the header {' '.join(COLUMNS)}, separated by tabs")
    rows = []
    for number, row in lines[1:]:
        if len(row) != len(COLUMNS):
            raise FormatError(f"{path}:{number}", f"has {len(row)} columns; expected {len(COLUMNS)} separated by tabs")
        pair = word_pair((path, number), (row[2], row[5]), (row[1], row[4]))
        if not math.isfinite(score := _number(row[6])):
            raise FormatError(f"{path}:{number}", f"has the score {row[6][:20]!r}; expected a number")
        rows.append((pair, score))
    return ScoredPairs.of(path, rows)


def read_scored_pairs(path: str | Path) -> ScoredPairs[tuple[str, str]]:
    """Read lines of two words and a score, separated by tabs, commas, semicolons or spaces, perhaps under a header.

    The score is the first number after the words: SimLex-999 has the part of speech before it, and more numbers after it.
    """
    rows, header = [], False
    for number, line in numbered_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        row = _columns(line)
        score = next((value for value in map(_number, row[2:]) if math.isfinite(value)), math.nan)
        if math.isfinite(score):
            rows.append(((row[0], row[1]), score))
        elif rows or header or len(row) < 3:
            raise FormatError(f"{path}:{number}", f"has {line[:40]!r}; expected two words and a score, separated by tabs")
        else:
            header = True
    return ScoredPairs.of(path, rows)


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


def probe_similarity(encoder: Encoder, data: ScoredPairs[WordPair]) -> ProbeResult:
    """Return the correlation for each layer and for combinations of layers; NaN if all cosines are equal."""
    title = f"similarity of {len(data.pairs):,} pairs of words in context"
    return _result(title, pair_cosines(encoder, data.pairs), data.scores, {"pairs": len(data.pairs)})


def probe_words(encoder: Encoder, data: ScoredPairs[tuple[str, str]]) -> ProbeResult:
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
    values = {name: cosines(view[first], view[second]) for name, view in layer_views(stack).items()}
    facts = {
        "pairs": len(data.pairs),
        "pairs_left_out": len(data.pairs) - len(kept),
        "unknown_words": len(unknown),
        "such_as": ", ".join(unknown[:5]) or None,
    }
    return _result(f"similarity of {len(kept):,} pairs of words", values, [data.scores[row] for row in kept], facts)


def _result(
    title: str, values: dict[str, NDArray[np.float64]], scores: Sequence[float], facts: Mapping[str, object]
) -> ProbeResult:
    """Correlate the cosines of each view of the layers with the scores."""
    rows = {name: {"Spearman": spearman(each, scores)} for name, each in values.items()}
    return ProbeResult(title=title, measures=("Spearman",), rows=rows, facts=facts)
