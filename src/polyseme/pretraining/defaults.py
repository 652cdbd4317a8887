"""Vocabulary, output layer and batch that fit the text, the machine and the time given. Imports no torch.

With 50,000 words to predict, nearly all of a small model's time goes into its softmax, for words of which a small text has too
few examples to learn them: on two cores, 90 seconds were three steps. So

- the vocabulary is words that occur three times, at most one for fifty words of text, and at most 50,000;
- on a CPU, more than 4,096 of them are trained by a sampled softmax, which is exact enough at a tenth of the time;
- where minutes are given, the batch is halved until at least 500 steps fit, as fewer teach only the frequency of words; but
  only while half the batch keeps two thirds of the words per second. Much of a step's time does not depend on its batch, and
  where that is most of it, smaller batches are hardly more steps and see far fewer words.
"""

from __future__ import annotations

MAX_VOCABULARY = 50_000
MIN_COUNT = 3
WORDS_PER_ENTRY = 50
SMALL_VOCABULARY = 1000
"""Words that a vocabulary has if the text has them, however rare."""
SPECIAL = 3
"""Begin, end and unknown token."""
FULL_ON_CPU = 4096
"""Words of a full softmax on a CPU, at most."""
NEGATIVES_ON_CPU = 1024
MIN_STEPS = 500
DIVISORS = (1, 2, 4, 8)
"""By which a batch may be divided."""
TRAINED = 0.85
"""Of the minutes, for steps; the rest is for measuring, evaluations and writing the model."""
KEPT = 2 / 3
"""Of the words per second: where half a batch keeps less, it is not halved."""
_FREQUENT = 0.35  # of the distinct words of a text of a million words occur three times, in English and in Chinese


def fitted_vocabulary(words: int, distinct: int, frequent: int | None = None) -> int:
    """Return the size of a vocabulary, special tokens included, for a text of so many words.

    `frequent`: how many of its distinct words occur `MIN_COUNT` times, where that is known.

    >>> fitted_vocabulary(955_095, 59_991, 21_704), fitted_vocabulary(1500, 300), fitted_vocabulary(30_000_000, 400_000)
    (19104, 303, 50000)
    """
    frequent = int(_FREQUENT * distinct) if frequent is None else frequent
    size = max(min(frequent, words // WORDS_PER_ENTRY), min(distinct, SMALL_VOCABULARY))
    return min(size + SPECIAL, MAX_VOCABULARY)


def batch_divisor(seconds: float, smallest_step: float, whole_step: float | None = None) -> int:
    """Return by how much to divide a batch, so that `MIN_STEPS` fit into some seconds and its words per second are kept.

    `smallest_step`: seconds of a step with the batch divided by the largest of `DIVISORS`. `whole_step`: of one with the whole
    batch; None: as much per word. Those between them are on the line through both.

    >>> batch_divisor(540, 0.05), batch_divisor(540, 0.5), batch_divisor(540, 20.0)
    (1, 4, 8)
    >>> batch_divisor(36, 0.085, 0.113), batch_divisor(36, 0.05, 0.15), batch_divisor(36, 0.1, 0.7)
    (1, 4, 8)
    """
    largest = DIVISORS[-1]
    whole = largest * smallest_step if whole_step is None else max(whole_step, smallest_step)
    per_part = (whole - smallest_step) / (largest - 1)  # of `largest` equal parts of the batch

    def step(divisor: int) -> float:
        return smallest_step + per_part * (largest / divisor - 1)

    for divisor in DIVISORS[:-1]:
        if seconds / step(divisor) >= MIN_STEPS or step(divisor) < 2 * KEPT * step(2 * divisor):
            return divisor
    return largest
