"""BLEU and chrF: worked out by hand, by another way of counting, and for the paired bootstrap."""

from __future__ import annotations

import importlib.util
import math
import random
import sys

import numpy as np
import pytest

from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.metrics.bootstrap import paired_bootstrap
from polyseme.metrics.translation import STATISTICS, bleu, bleu_score, bleu_statistics, chrf

MISSING = importlib.util.find_spec("sacrebleu") is None
needs_sacrebleu = pytest.mark.skipif(MISSING, reason="sacrebleu is missing: pip install 'polyseme[generation]'")


def texts(count: int, seed: int, noise: float) -> tuple[list[str], list[str]]:
    """References, and answers with some words changed."""
    source = random.Random(seed)
    references = [[source.choice("abcdefgh") for _ in range(source.randint(1, 12))] for _ in range(count)]
    answers = [[source.choice("xyz") if source.random() < noise else word for word in text] for text in references]
    return [" ".join(text) for text in references], [" ".join(text) for text in answers]


@needs_sacrebleu
def test_bleu_by_hand() -> None:
    reference, answer = "the cat is on the mat today", "the cat sat on the mat"
    # right runs: 5 of 6 words, 3 of 5 pairs, 1 of 4, 0 of 3 (smoothed to a half); 6 words for 7
    expected = math.exp(1 - 7 / 6) * (5 / 6 * 3 / 5 * 1 / 4 * 0.5 / 3) ** 0.25
    assert bleu([reference], [answer]) == pytest.approx(expected)
    statistics = bleu_statistics([reference], [answer])
    assert statistics.tolist() == [[5, 3, 1, 0, 6, 5, 4, 3, 6, 7]]
    assert bleu_score(statistics[0]) == pytest.approx(expected)
    assert bleu(["a b"], ["x y"]) == bleu_score(bleu_statistics(["a b"], ["x y"])[0]) == 0.0


@needs_sacrebleu
def test_words_as_they_are_cut() -> None:
    assert bleu(["A dog, here, is it."] * 2, ["A dog , here , is it ."] * 2) == pytest.approx(1.0)
    assert bleu(["我在北京的家里"], ["我在北京的家里"], "zh") == pytest.approx(1.0)
    assert 0 < bleu(["我在北京的家里"], ["我在北京的屋里"], "zh") < 1
    assert bleu(["A dog runs there"], ["a dog runs there"]) < 1  # case counts
    with pytest.raises(UsageError, match=r"unknown BLEU tokenizer '13b' \(did you mean '13a'\?\)"):
        bleu(["a"], ["a"], "13b")  # type: ignore[arg-type]


@needs_sacrebleu
def test_chrf_by_hand() -> None:
    # runs of one and two characters: 3 of 4 and 2 of 3, on both sides; longer ones likewise: 1 of 2, 0 of 1
    shares = [3 / 4, 2 / 3, 1 / 2, 0]
    assert chrf(["abcd"], ["abcx"]) == pytest.approx(sum(shares) / 4, abs=1e-6)
    assert chrf(["ab cd"], ["abcd"]) == pytest.approx(1.0)  # blanks do not count


@needs_sacrebleu
@pytest.mark.parametrize("noise", [0.05, 0.3, 0.8, 1.0])
def test_statistics_add_up_to_the_score(noise: float) -> None:
    for seed in range(5):
        references, answers = texts(20, seed, noise)
        statistics = bleu_statistics(references, answers)
        assert statistics.shape == (20, STATISTICS)
        assert float(bleu_score(statistics.sum(0))) == pytest.approx(bleu(references, answers), abs=1e-9)


@needs_sacrebleu
def test_a_paired_bootstrap_of_bleu() -> None:
    references, worse = texts(200, 1, 0.4)
    _, better = texts(200, 1, 0.1)
    old, new = (bleu_statistics(references, answers) for answers in (worse, better))
    result = paired_bootstrap([old], [new], score=bleu_score, resamples=500)
    assert result.old == pytest.approx(bleu(references, worse)) and result.new == pytest.approx(bleu(references, better))
    assert result.p < 0.01 and result.difference.low > 0
    assert bleu_score(np.zeros((3, 2, STATISTICS))).tolist() == [[0, 0], [0, 0], [0, 0]]


def test_what_is_given_must_match() -> None:
    with pytest.raises(UsageError, match="1 predictions for 2 references"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(UsageError, match="0 predictions for 0 references"):
        chrf([], [])
    with pytest.raises(UsageError, match="expected lists of references and predictions, got a string"):
        bleu("a", "a")


def test_without_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(MissingExtraError, match=r"need sacrebleu, .* not installed: pip install 'polyseme\[generation\]'"):
        bleu(["a"], ["a"])
