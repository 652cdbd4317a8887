"""Exact match and F1 of answers to questions, as in the evaluation scripts of SQuAD and CMRC.

- `squad`: SQuAD's evaluate-v1.1.py. Texts are lower-cased and lose ASCII punctuation and the articles a, an, the; the rest is
  compared as a bag of words. The best of all gold answers counts. There every question has an answer; without one, only "" is
  correct.
- `squad2`: evaluate-v2.0.py. The same, but an answer that normalises to nothing (such as "", no answer) matches another such
  answer, also in F1, and counts among gold answers only if it is the only one.
- `cmrc`: cmrc2018_evaluate.py, for Chinese. Texts are lower-cased and lose a list of symbols; each Chinese character is a
  token, other text is split into words. F1 is that of the longest common run of tokens, not of a bag. The script splits other
  text with NLTK; here words are letters and digits with points, commas and apostrophes inside, and every other symbol is a
  token, which differs in contractions (do n't). Without a gold answer, "" is correct, as in `squad2`.
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
_SIGNS = "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』"  # their list also has "……", which matches no single character
_NO_SIGNS = str.maketrans("", "", _SIGNS)
_TOKENS = re.compile(r"[\u4e00-\u9fa5]|[^\W\u4e00-\u9fa5]+(?:[.,'][^\W\u4e00-\u9fa5]+)*|[^\w\s]")


def exact_match(answer: str, gold: Sequence[str], rules: ScoringRules = "squad") -> float:
    """Return 1 if an answer equals a gold answer up to case, punctuation and (in English) articles, else 0.

    >>> exact_match("the Broncos!", ["Denver Broncos", "Broncos"])
    1.0
    """
    if _known(rules) == "squad" and not gold:
        return float(not answer)
    plain = _stripped if rules == "cmrc" else normalize_answer
    return float(any(plain(answer) == plain(right) for right in _right(gold, rules)))


def answer_f1(answer: str, gold: Sequence[str], rules: ScoringRules = "squad") -> float:
    """Return the F1 of the tokens of an answer, the best over `gold`.

    >>> answer_f1("the Denver team", ["Denver Broncos"]), answer_f1("北京市", ["北京"], "cmrc")
    (0.5, 0.8)
    """
    if _known(rules) == "cmrc":
        tokens = cmrc_tokens(answer)
        if not gold:
            return float(not tokens)
        return max(_f1(_longest_run(tokens, cmrc_tokens(right)), len(tokens), len(cmrc_tokens(right))) for right in gold)
    if rules == "squad" and not gold:
        return float(not answer)
    words = normalize_answer(answer).split()
    return max(_bag_f1(words, normalize_answer(right).split(), rules) for right in _right(gold, rules))


def normalize_answer(text: str) -> str:
    """Normalise a text as SQuAD does.

    >>> normalize_answer("The  U.S.A.'s (an) army")
    'usas army'
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def cmrc_tokens(text: str) -> list[str]:
    """Split a text as CMRC does: Chinese characters and other words, without symbols.

    >>> cmrc_tokens("《战国无双3》在iPhone 6上，20.5元")
    ['战', '国', '无', '双', '3', '在', 'iphone', '6', '上', '20.5', '元']
    """
    return _TOKENS.findall(_stripped(text))


def _stripped(text: str) -> str:
    return text.lower().strip().translate(_NO_SIGNS)


def _known(rules: ScoringRules) -> ScoringRules:
    if rules not in get_args(ScoringRules):
        raise UsageError(f"unknown scoring rules {rules!r}{nearest(rules, get_args(ScoringRules))}")
    return rules


def _right(gold: Sequence[str], rules: ScoringRules) -> list[str]:
    """Return the gold answers; [""] if there are none."""
    kept = [right for right in gold if normalize_answer(right)] if rules == "squad2" else list(gold)
    return kept or [""]


def _bag_f1(answer: list[str], right: list[str], rules: ScoringRules) -> float:
    if rules == "squad2" and not (answer and right):
        return float(answer == right)
    return _f1(sum((Counter(answer) & Counter(right)).values()), len(answer), len(right))


def _f1(same: int, answer: int, right: int) -> float:
    """Return F1 from the number of common tokens and the tokens of each."""
    return 2 * same / (answer + right) if same else 0.0


def _longest_run(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common run of tokens."""
    longest, previous = 0, [0] * (len(b) + 1)  # for each end in b: the run that ends there and at the previous token of a
    for token in a:
        current = [0] * (len(b) + 1)
        for end, other in enumerate(b, start=1):
            if token == other:
                current[end] = previous[end - 1] + 1
        longest, previous = max(longest, *current), current
    return longest
