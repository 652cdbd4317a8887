"""Exercises of chapter 11. Write the three functions, then check them:

python -m pytest course/exercises/check_11.py
"""

from __future__ import annotations

import numpy as np


def masked_loss(log_probs: np.ndarray, targets: np.ndarray) -> float:
    """Return the mean negative log-probability of the words to predict.

    `log_probs` is (words, vocabulary); `targets` (words,) has the id of the word to predict, and -100 where nothing is
    predicted. Return 0.0 if nothing is predicted at all.
    """
    raise NotImplementedError("masked_loss")


def bert_input(first: list[str], second: list[str], max_length: int) -> tuple[list[str], list[int]]:
    """Return the tokens [CLS] first [SEP] second [SEP] and their segments, 0 up to the first [SEP] (included), then 1.

    If that is longer than `max_length`, remove the last token of the longer text (of the second, if they are equally
    long), again and again until it fits.
    """
    raise NotImplementedError("bert_input")


def whole_word_mask(subwords: list[str], words: set[int]) -> list[str]:
    """Return the subwords of a text with some whole words masked; `words` has their numbers, from 0.

    A subword that begins with "##" continues the word before it: ["the", "em", "##bank", "##ment"] has two words. Every
    subword of a chosen word becomes its own "[MASK]".
    """
    raise NotImplementedError("whole_word_mask")
