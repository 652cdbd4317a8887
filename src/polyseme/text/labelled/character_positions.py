"""Chinese characters that are followed by their position in their word: `科0 技1 全0 方0 位1`, as Weibo NER is published.

No other text looks like this, so a model would know none of these tokens. The positions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_CHARACTER = re.compile(r"[\u4e00-\u9fff][0-9]+")
_POSITION = re.compile(r"(?<=.)[0-9]+$")
_FEW = 20  # Chinese characters that a file must have
_MOST = 0.99  # of the tokens have a position that fits
_SAMPLE = 1_000  # sentences by which positions are recognised


def without_positions(sentences: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """Remove the positions from all words of a file; None: they have none.

    >>> without_positions([["科0", "技1", "全0", "方0", "位1", "A0", "P1"]] * 10)[0]
    ['科', '技', '全', '方', '位', 'A', 'P']
    >>> without_positions([["公元", "2020", "年"]] * 20) is None
    True
    """
    sample = sentences[:_SAMPLE]
    characters = sum(_CHARACTER.fullmatch(word) is not None for words in sample for word in words)
    if characters < _FEW:
        return None
    stripped = [list(_stripped(words)) for words in sample]
    found = sum(each is not None for words in stripped for each in words)
    if found < _MOST * sum(map(len, sample)) or all(word.endswith("0") for words in sample for word in words):
        return None
    return [
        [_POSITION.sub("", word) if each is None else each for word, each in zip(words, _stripped(words), strict=True)]
        for words in sentences
    ]


def _stripped(words: Iterable[str]) -> Iterator[str | None]:
    """Each word without its position: the one after that of the word before, or 0; None where it has neither."""
    position = -1
    for word in words:
        follows = str(position + 1)
        if len(word) > len(follows) and word.endswith(follows):
            position += 1
            yield word[: -len(follows)]
        else:
            position = 0 if len(word) > 1 and word.endswith("0") else -1
            yield word[:-1] if position == 0 else None
