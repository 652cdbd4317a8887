"""How similar two words are by people and by a model: WordSim-353, SimLex-999 and their like, Spearman's correlation.

Each word is read alone. A word that the model lacks is looked for with other capitals; a pair with a word that it does not
know is left out, and counted.
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
    """Pairs of words, and how similar people found them."""

    pairs: list[tuple[str, str]]
    scores: list[float]


def read_scored_pairs(path: str | Path) -> ScoredPairs:
    """Lines of two words and a score, divided by tabs, commas, semicolons or blanks; a line of names may stand above.

    The score is the first number after the words: SimLex-999 has the part of speech before it, and more numbers behind.
    """
    pairs, scores, named = [], [], False
    for number, line in numbered_lines(path):
        if not line.strip() or line.startswith("#"):
            continue
        row = _columns(line)
        score = next((value for value in map(_number, row[2:]) if math.isfinite(value)), math.nan)
        if math.isfinite(score):
            pairs.append((row[0], row[1]))
            scores.append(score)
        elif pairs or named or len(row) < 3:
            raise FormatError(f"{path}:{number}", f"holds {line[:40]!r}; expected two words and a score, divided by tabs")
        else:
            named = True
    if len(pairs) < 2:
        raise FormatError(path, f"holds {len(pairs)} pairs; a correlation needs at least 2")
    return ScoredPairs(pairs, scores)


def _columns(line: str) -> list[str]:
    for sign in "\t;,":
        if line.count(sign) >= 2:
            return [part.strip() for part in line.split(sign)]
    return line.split()


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def probe_words(encoder: Encoder, data: ScoredPairs) -> ProbeResult:
    """The correlation for each layer, of the pairs whose words the model knows."""
    words = list(dict.fromkeys(word for pair in data.pairs for word in pair))
    vectors = isolated_word_vectors(encoder, words)
    unknown = [word for word in words if word not in vectors]
    kept = [position for position, (one, two) in enumerate(data.pairs) if one in vectors and two in vectors]
    if len(kept) < 2:
        raise PolysemeError(f"the model knows both words of {len(kept)} pairs of {len(data.pairs)}; a correlation needs 2")
    number = {word: position for position, word in enumerate(vectors)}
    stack = np.stack(list(vectors.values()), axis=1)  # (layers, words, dim)
    first, second = ([number[data.pairs[position][side]] for position in kept] for side in (0, 1))
    scores = [data.scores[position] for position in kept]
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
