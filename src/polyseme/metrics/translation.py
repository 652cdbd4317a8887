"""BLEU and chrF of generated texts, by sacrebleu (Post 2018; extra `generation`), from 0 to 1.

Both are scores of a whole corpus and not means over texts. BLEU (Papineni et al. 2002) counts n-grams of one to four words that
the reference has too. It is a function of ten counts that are summed over texts, so two systems can be compared by the paired
bootstrap (`polyseme.metrics.bootstrap`), as in Koehn (2004). chrF (Popović 2015) counts n-grams of characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from polyseme.base.errors import MissingExtraError, UsageError, nearest
from polyseme.metrics.bootstrap import Floats

BleuTokenizer = Literal["13a", "intl", "zh", "char", "none"]
"""How sacrebleu splits words: 13a is its default, zh takes Chinese characters one by one, none splits at spaces."""
ORDERS = 4
STATISTICS = 2 * ORDERS + 2
"""Per text: correct n-grams (1 to 4), all n-grams, words of the prediction, words of the reference."""


def sacrebleu_metrics() -> Any:
    """Return sacrebleu's metrics, or raise an error that says how to install it: before training and not after."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingExtraError("BLEU and chrF need sacrebleu", "generation") from error
    return metrics


def bleu(references: Sequence[str], answers: Sequence[str], words: BleuTokenizer = "13a") -> float:
    """Return the BLEU of all predictions, one reference each, from 0 to 1; case-sensitive.

    >>> bleu(["the cat sat on the mat ."], ["the cat sat on the mat ."])
    1.0
    """
    _check(references, answers)
    return min(_bleu(words).corpus_score(list(answers), [list(references)]).score / 100, 1.0)


def chrf(references: Sequence[str], answers: Sequence[str]) -> float:
    """Return the chrF (up to 6 characters, recall counts double) of all predictions, from 0 to 1."""
    _check(references, answers)
    return min(sacrebleu_metrics().CHRF().corpus_score(list(answers), [list(references)]).score / 100, 1.0)


def bleu_statistics(references: Sequence[str], answers: Sequence[str], words: BleuTokenizer = "13a") -> Floats:
    """Return the counts of each text (`STATISTICS`) for `bleu_score`, (texts, 10)."""
    _check(references, answers)
    metric = _bleu(words, effective_order=True)  # only affects the score of one text, which is not used
    found = [metric.sentence_score(answer, [right]) for right, answer in zip(references, answers, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], dtype=np.float64)


def bleu_score(sums: Floats) -> Floats:
    """Return BLEU from sums of `bleu_statistics` (..., 10), for `paired_bootstrap`; equal to `bleu` of the same texts.

    Smoothed as in sacrebleu: an order without correct n-grams counts as half a correct n-gram, the next as a quarter.
    """
    right, runs, answer, reference = sums[..., :ORDERS], sums[..., ORDERS:-2], sums[..., -2], sums[..., -1]
    missing = right == 0
    precision = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), right) / np.maximum(runs, 1)
    brevity = np.minimum(1.0, np.exp(1 - reference / np.maximum(answer, 1)))
    score: Floats = brevity * np.exp(np.log(precision).mean(-1))
    return np.where((right[..., 0] == 0) | (runs == 0).any(-1), 0.0, score)


def _bleu(words: BleuTokenizer, **options: Any) -> Any:
    if words not in get_args(BleuTokenizer):
        raise UsageError(f"unknown BLEU tokenizer {words!r}{nearest(words, get_args(BleuTokenizer))}")
    return sacrebleu_metrics().BLEU(tokenize=words, **options)


def _check(references: Sequence[str], answers: Sequence[str]) -> None:
    if isinstance(references, str) or isinstance(answers, str):
        raise UsageError("expected lists of references and predictions, got a string: put it into a list")
    if len(references) != len(answers) or not references:
        raise UsageError(f"{len(answers)} predictions for {len(references)} references; expected one for each")
