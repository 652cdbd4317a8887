"""Whether Chinese text is in traditional characters, which a model of simplified text has not read.

Python's own tables tell: Big5 has the characters of Taiwan and Hong Kong, GB 2312 those of the mainland. Of the characters of
traditional texts (DRCD, Chinese GSD) 32 % are in Big5 alone; of simplified ones at most 0.4 %, and those mostly in names. A
table of pairs (OpenCC) was not chosen: it would be a package to install for one sentence of advice.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Container

_ENOUGH = 0.05  # of the Han characters; names of people alone rarely reach it

_ENOUGH_OF_A_LINE = 0.1  # and two: a rare character in a short line is no traditional text
MIN_LINES = 0.02
"""Of the lines: so many are reported."""
_HAN = re.compile("[\u4e00-\u9fff]")
_KANA = re.compile("[\u3040-\u30ff]")


def traditional_characters(text: str, known: Container[str] = frozenset()) -> list[str]:
    """Return the characters that only traditional text has, the most frequent first; none if they are rare.

    `known`: characters that do not count, because the words of a model have them.

    >>> traditional_characters("臺灣的夜市非常熱鬧"), traditional_characters("台湾的夜市非常热闹")
    (['臺', '灣', '熱', '鬧'], [])
    """
    han = Counter(character for character in text if "\u4e00" <= character <= "\u9fff")
    found = {each: count for each, count in han.most_common() if each not in known and _only_traditional(each)}
    return list(found) if found and sum(found.values()) >= _ENOUGH * han.total() else []


def is_traditional(line: str, known: Container[str] = frozenset()) -> bool:
    """Whether a line is Chinese in traditional characters, not counting `known` ones.

    >>> [is_traditional(line) for line in ("她打電話", "她打电话", "漢字と平假名を讀む")]
    [True, False, False]
    """
    if line.isascii() or _KANA.search(line):
        return False
    han = _HAN.findall(line)
    found = sum(each not in known and _only_traditional(each) for each in han)
    return found >= max(2, _ENOUGH_OF_A_LINE * len(han))


@functools.lru_cache(maxsize=1 << 15)
def _only_traditional(character: str) -> bool:
    return _has("big5", character) and not _has("gb2312", character)


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
