"""Solutions of the exercises of chapter 11."""

from __future__ import annotations

import numpy as np


def masked_loss(log_probs: np.ndarray, targets: np.ndarray) -> float:
    places = np.flatnonzero(targets != -100)
    return -float(log_probs[places, targets[places]].mean()) if len(places) else 0.0


def bert_input(first: list[str], second: list[str], max_length: int) -> tuple[list[str], list[int]]:
    first, second = list(first), list(second)
    while len(first) + len(second) + 3 > max_length:
        (first if len(first) > len(second) else second).pop()
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    return tokens, [0] * (len(first) + 2) + [1] * (len(second) + 1)


def whole_word_mask(subwords: list[str], words: set[int]) -> list[str]:
    numbers = np.cumsum([not subword.startswith("##") for subword in subwords]) - 1
    return ["[MASK]" if number in words else subword for number, subword in zip(numbers.tolist(), subwords, strict=True)]
