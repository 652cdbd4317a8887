"""Whether a word has the same sense in two sentences: WiC (Pilehvar and Camacho-Collados 2019).

The cosine of the word's two vectors is compared with a threshold, which is chosen on dev for each layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.word_pairs import WordPair, pair_cosines, word_pair
from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.encoders.base import Encoder
from polyseme.text.labelled.numbered_lines import numbered_lines


@dataclass(frozen=True)
class WordInContext:
    """Pairs, and whether both words have the same sense."""

    pairs: list[WordPair]
    same: NDArray[np.bool_]


def read_wic(data: str | Path, gold: str | Path | None = None) -> WordInContext:
    """Read pairs from `data` (word, part of speech, i-j, two sentences, separated by tabs) and T or F from `gold`.

    By default `gold` is the file beside with `gold` for `data` in its name: dev.data.txt, dev.gold.txt.
    """
    pairs = [_pair(data, number, line) for number, line in numbered_lines(data) if line.strip()]
    gold = gold or _beside(Path(data))
    answers = []
    for number, line in numbered_lines(gold):
        if line.strip() not in ("T", "F", ""):
            raise FormatError(f"{gold}:{number}", f"has {line[:20]!r}; expected T or F")
        answers += [line.strip() == "T"] if line.strip() else []
    if len(answers) != len(pairs) or not pairs:
        raise FormatError(gold, f"has {len(answers)} answers for the {len(pairs)} pairs of {data}; expected one per pair")
    return WordInContext(pairs, np.array(answers))


def _pair(path: str | Path, number: int, line: str) -> WordPair:
    row = line.split("\t")
    if len(row) != 5 or row[2].count("-") != 1:
        expected = "expected 5 separated by tabs: word, part of speech, i-j, sentence, sentence"
        raise FormatError(f"{path}:{number}", f"has {len(row)} columns, {line[:30]!r}; {expected}")
    return word_pair((path, number), (row[3], row[4]), row[2].split("-"))


def _beside(data: Path) -> Path:
    gold = data.with_name(data.name.replace("data", "gold"))
    if gold == data or not gold.exists():
        missing = "" if gold == data else f" (there is no {gold})"
        raise UsageError(f"the answers to {data} are missing{missing}: give them with {arg('dev_gold')} or {arg('test_gold')}")
    return gold


def probe_word_in_context(encoder: Encoder, dev: WordInContext, test: WordInContext) -> ProbeResult:
    """Return the accuracy on test and dev with the best threshold on dev, for each layer and for combinations of layers."""
    on_dev = pair_cosines(encoder, dev.pairs, title="embedding dev")
    on_test = pair_cosines(encoder, test.pairs, title="embedding test")
    rows = {}
    for name, values in on_dev.items():
        threshold = best_threshold(values, dev.same)
        rows[name] = {
            "accuracy": float(np.mean((on_test[name] >= threshold) == test.same)),
            "dev": float(np.mean((values >= threshold) == dev.same)),
            "threshold": threshold,
        }
    chosen = max(rows, key=lambda name: rows[name]["dev"])
    majority = bool(dev.same.mean() >= 0.5)
    one_answer = {"accuracy": float(np.mean(test.same == majority)), "dev": float(np.mean(dev.same == majority))}
    return ProbeResult(
        title=f"one sense or two, {len(test.pairs):,} pairs",
        measures=("accuracy", "dev", "threshold"),
        rows=rows,
        baselines={"one answer": one_answer},
        facts={
            "dev_pairs": len(dev.pairs),
            "test_pairs": len(test.pairs),
            "chosen_on_dev": chosen,
            "accuracy_of_chosen": round(rows[chosen]["accuracy"], 4),
        },
    )


def best_threshold(values: NDArray[np.float64], same: NDArray[np.bool_]) -> float:
    """Return the threshold with the highest accuracy; of equally good ones the middle one.

    >>> best_threshold(np.array([0.2, 0.4, 0.8]), np.array([False, False, True]))
    0.6000000000000001
    """
    distinct = np.unique(values)
    between = (distinct[1:] + distinct[:-1]) / 2
    candidates = np.concatenate([[distinct[0] - 1], between, [distinct[-1] + 1]])
    right = np.array([np.sum((values >= candidate) == same) for candidate in candidates])
    best = np.flatnonzero(right == right.max())
    return float(candidates[best[len(best) // 2]])
