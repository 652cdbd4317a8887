"""BLEU and chrF of generated texts, by sacrebleu (Post 2018; extra `generation`), as shares of 1.

Both are of a whole set and not means over texts. BLEU (Papineni et al. 2002) counts runs of one to four words that stand in the
reference too, and is a function of ten counts that add up over texts: so two systems can be compared by the paired bootstrap
(`polyseme.metrics.bootstrap`), as Koehn (2004) did it first. chrF (Popović 2015) counts runs of characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from polyseme.base.errors import MissingExtraError, UsageError, nearest
from polyseme.metrics.bootstrap import Floats

BleuTokenizer = Literal["13a", "intl", "zh", "char", "none"]
"""How sacrebleu cuts texts into words: 13a is the usual way, zh takes Chinese characters one by one, none splits at blanks."""
ORDERS = 4
STATISTICS = 2 * ORDERS + 2
"""Of a text: runs of 1 to 4 words that are right, all runs of 1 to 4 words, words of the answer, words of the reference."""


def sacrebleu_metrics() -> Any:
    """The package's own measures, or an error that says how to get them: before hours of training and not behind them."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise MissingExtraError("scores of generated text (BLEU, chrF) need sacrebleu", "generation") from error
    return metrics


def bleu(references: Sequence[str], answers: Sequence[str], words: BleuTokenizer = "13a") -> float:
    """BLEU of all answers, one reference each, from 0 to 1; case counts.

    >>> bleu(["the cat sat on the mat ."], ["the cat sat on the mat ."])
    1.0
    """
    _check(references, answers)
    return min(_bleu(words).corpus_score(list(answers), [list(references)]).score / 100, 1.0)


def chrf(references: Sequence[str], answers: Sequence[str]) -> float:
    """chrF (runs of up to 6 characters, recall counts double) of all answers, from 0 to 1."""
    _check(references, answers)
    return min(sacrebleu_metrics().CHRF().corpus_score(list(answers), [list(references)]).score / 100, 1.0)


def bleu_statistics(references: Sequence[str], answers: Sequence[str], words: BleuTokenizer = "13a") -> Floats:
    """(texts, 10): the counts of each text (`STATISTICS`), for `bleu_score`."""
    _check(references, answers)
    metric = _bleu(words, effective_order=True)  # of its score of one text, which is not looked at
    found = [metric.sentence_score(answer, [right]) for right, answer in zip(references, answers, strict=True)]
    return np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in found], dtype=np.float64)


def bleu_score(sums: Floats) -> Floats:
    """BLEU from sums of `bleu_statistics` (..., 10), for `paired_bootstrap`; equal to `bleu` of the same texts.

    As sacrebleu smooths it: where no run of a length is right, half a run is taken for right, then a quarter.
    """
    right, runs, answer, reference = sums[..., :ORDERS], sums[..., ORDERS:-2], sums[..., -2], sums[..., -1]
    missing = right == 0
    share = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), right) / np.maximum(runs, 1)
    brevity = np.minimum(1.0, np.exp(1 - reference / np.maximum(answer, 1)))
    score: Floats = brevity * np.exp(np.log(share).mean(-1))
    return np.where((right[..., 0] == 0) | (runs == 0).any(-1), 0.0, score)


def _bleu(words: BleuTokenizer, **options: Any) -> Any:
    if words not in get_args(BleuTokenizer):
        raise UsageError(f"BLEU has no way to cut words called {words!r}{nearest(words, get_args(BleuTokenizer))}")
    return sacrebleu_metrics().BLEU(tokenize=words, **options)


def _check(references: Sequence[str], answers: Sequence[str]) -> None:
    if isinstance(references, str) or isinstance(answers, str):
        raise UsageError("expected lists of references and answers, got one string: put it into a list")
    if len(references) != len(answers) or not references:
        raise UsageError(f"{len(answers)} answers for {len(references)} references; expected as many of both, and at least one")
