"""Exercises of chapter 1. Write the three functions, then check them:

python -m pytest course/exercises/check_01.py
"""

from __future__ import annotations


def perplexity(log_probs: list[float]) -> float:
    """Return the perplexity of a text from the natural-log probabilities of its tokens.

    A model that gives every token the probability 1/10 has the perplexity 10.
    """
    raise NotImplementedError("perplexity")


def add_k(bigrams: dict[tuple[str, str], int], context: str, word: str, k: float, vocabulary: list[str]) -> float:
    """Return P(word | context) with add-k smoothing: k is added to the count of every word of the vocabulary.

    `bigrams` maps (context, word) to a count; pairs that were not seen are not in it.
    """
    raise NotImplementedError("add_k")


def continuation_counts(bigrams: dict[tuple[str, str], int]) -> dict[str, int]:
    """Return, for each word, after how many different words it was seen.

    Kneser-Ney uses this number in place of the count of the word alone.
    """
    raise NotImplementedError("continuation_counts")
