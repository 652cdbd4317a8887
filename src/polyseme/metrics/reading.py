"""Exact match and F1 of answers to questions, as the scripts of SQuAD and CMRC count them.

- `squad`: SQuAD's evaluate-v1.1.py. Small letters, ASCII punctuation dropped, then the articles a, an, the; what is left
  between white space is compared as a bag of words. The best of all right answers counts. Every question has one there; of
  one that has none, only "" is right.
- `squad2`: evaluate-v2.0.py. The same, but an answer of which nothing is left (as "", which says that there is none) is
  right beside another such one, also in F1, and counts among right answers only where it is the only one.
- `cmrc`: cmrc2018_evaluate.py, for Chinese. Small letters, a list of signs dropped; every Chinese character is a piece, and
  other text goes by words. F1 is that of the longest run of tokens that both share, not of a bag. Its words of other text
  are NLTK's, ours are letters and digits with points, commas and apostrophes inside, and every other sign alone: these
  differ in contractions (do n't). Where no answer is right, "" is, as in `squad2`.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

from polyseme.base.errors import UsageError, nearest

ScoringRules = Literal["squad", "squad2", "cmrc"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SIGNS = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"  # their list also has "……", which no single character equals
_NO_SIGNS = str.maketrans("", "", _SIGNS)
_PIECES = re.compile(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+(?:[.,'][^\W\u4e00-\u9fa5]+)*|[^\w\s]")


def exact_match(answer: str, gold: Sequence[str], rules: ScoringRules = "squad") -> float:
    """1 where an answer equals one of the right ones but for case, punctuation and (in English) articles, else 0.

    >>> exact_match("the Broncos!", ["Denver Broncos", "Broncos"])
    1.0
    """
    if _known(rules) == "squad" and not gold:
        return float(not answer)
    plain = _stripped if rules == "cmrc" else normalize_answer
    return float(any(plain(answer) == plain(right) for right in _right(gold, rules)))


def answer_f1(answer: str, gold: Sequence[str], rules: ScoringRules = "squad") -> float:
    """The harmonic mean of how much of the answer is right, and how much of what is right it says; the best over `gold`.

    >>> answer_f1("the Denver team", ["Denver Broncos"]), answer_f1("北京市", ["北京"], "cmrc")
    (0.5, 0.8)
    """
    if _known(rules) == "cmrc":
        found = cmrc_tokens(answer)
        if not gold:
            return float(not found)
        return max(_f1(_longest_run(found, cmrc_tokens(right)), len(found), len(cmrc_tokens(right))) for right in gold)
    if rules == "squad" and not gold:
        return float(not answer)
    words = normalize_answer(answer).split()
    return max(_bag_f1(words, normalize_answer(right).split(), rules) for right in _right(gold, rules))


def normalize_answer(text: str) -> str:
    """As SQuAD compares texts.

    >>> normalize_answer("The  U.S.A.'s (an) army")
    'usas army'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def cmrc_tokens(text: str) -> list[str]:
    """As CMRC compares texts: Chinese characters and other words, without signs.

    >>> cmrc_tokens("《战国无双3》在iPhone 6上，20.5元")
    ['战', '国', '无', '双', '3', '在', 'iphone', '6', '上', '20.5', '元']
    """
    return _PIECES.findall(_stripped(text))


def _stripped(text: str) -> str:
    return text.lower().strip().translate(_NO_SIGNS)


def _known(rules: ScoringRules) -> ScoringRules:
    if rules not in get_args(ScoringRules):
        raise UsageError(f"there are no rules of counting called {rules!r}{nearest(rules, get_args(ScoringRules))}")
    return rules


def _right(gold: Sequence[str], rules: ScoringRules) -> list[str]:
    """The right answers; "" where there is none."""
    kept = [right for right in gold if normalize_answer(right)] if rules == "squad2" else list(gold)
    return kept or [""]


def _bag_f1(answer: list[str], right: list[str], rules: ScoringRules) -> float:
    if rules == "squad2" and not (answer and right):
        return float(answer == right)
    return _f1(sum((Counter(answer) & Counter(right)).values()), len(answer), len(right))


def _f1(same: int, answer: int, right: int) -> float:
    """From the counts of what both share, and of all that each has; 2 * same / (answer + right)."""
    return 2 * same / (answer + right) if same else 0.0


def _longest_run(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest run of tokens that stands in both."""
    longest, before = 0, [0] * (len(b) + 1)  # for each end in b: the run that ends there and at the piece before in a
    for piece in a:
        here = [0] * (len(b) + 1)
        for place, other in enumerate(b, start=1):
            if piece == other:
                here[place] = before[place - 1] + 1
        longest, before = max(longest, *here), here
    return longest
