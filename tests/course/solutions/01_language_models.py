"""Solutions of chapter 1."""

from __future__ import annotations

import math
from collections import Counter


def perplexity(log_probs: list[float]) -> float:
    return math.exp(-sum(log_probs) / len(log_probs))


def add_k(bigrams: dict[tuple[str, str], int], context: str, word: str, k: float, vocabulary: list[str]) -> float:
    total = sum(bigrams.get((context, each), 0) for each in vocabulary)
    return (bigrams.get((context, word), 0) + k) / (total + k * len(vocabulary))


def continuation_counts(bigrams: dict[tuple[str, str], int]) -> dict[str, int]:
    return dict(Counter(word for _, word in bigrams))
