"""The splitters `characters` and `each-character`, and the scripts that are written without spaces between words.

Each Chinese, Japanese or Korean character is a word, and so is each letter of Thai, Lao, Khmer and Burmese with the vowel
and tone signs on it. Runs of other letters and digits stay together in `characters`, and are cut in `each-character`.
"""

from __future__ import annotations

import functools
import re

from polyseme.text.splitting.unicode_classes import combining_marks, strip_invisible, symbol_pattern, word_internal

CJK = "々〇\u1100-\u11ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
CJK += "\uf900-\ufaff\uff66-\uffdc\U00016fe0-\U00018dff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
"""Chinese, Japanese and Korean, as the inside of a regular-expression character class."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"  # Thai, Lao, Burmese, Khmer
_STACKS = "\u1039\u17d2"  # Burmese and Khmer: puts the next letter below this one
_AM = "\u0e33\u0eb3"  # Thai and Lao: a vowel half above the letter; Unicode calls it a letter, but it never begins a word


def split_characters(text: str) -> list[str]:
    """Split unspaced scripts into letters, other text into runs of letters and digits."""
    return _pattern().findall(strip_invisible(text))


def split_each_character(text: str) -> list[str]:
    """Split text into characters, letters and digits too.

    >>> split_each_character("GPT 4很好"), split_characters("GPT 4很好")
    (['G', 'P', 'T', '4', '很', '好'], ['GPT', '4', '很', '好'])
    """
    return _pattern(runs=False).findall(strip_invisible(text))


@functools.cache
def unspaced_letter() -> str:
    """Return a pattern for one letter of an unspaced script with its combining marks.

    A joiner after a CJK character is not part of it.
    """
    stacked = rf"[{_STACKS}][^\W\d_]"
    return rf"(?:[{CJK}][{combining_marks()}]*+|(?!\d)[{_UNSPACED}](?:{stacked}|[{word_internal()}{_AM}])*+)"


@functools.cache
def _pattern(*, runs: bool = True) -> re.Pattern[str]:
    letter = rf"(?:[^\W{CJK}{_UNSPACED}]|\d)"
    other = rf"(?:{letter}[{word_internal()}]*+)"  # a joiner or mark after a letter is part of its word
    return re.compile(rf"{unspaced_letter()}|{other}{'++' if runs else ''}|{symbol_pattern()}|\S")
