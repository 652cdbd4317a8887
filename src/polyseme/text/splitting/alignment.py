"""Alignment of two tokenizations of the same text: which words a token overlaps.

Data may be split otherwise than a model reads: Chinese names are tagged character by character, and the model knows words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.unicode_classes import strip_invisible
from polyseme.text.words import normalise_quotes


def overlaps(tokens: Sequence[str], words: Sequence[str]) -> list[range]:
    """Return for each token the range of the words that share a character with it.

    Both must spell the same text up to white space, invisible characters and the form of quotes. A token of these alone
    overlaps no word.

    >>> overlaps(["北", "京", "市长"], ["北京市", "长"])
    [range(0, 1), range(0, 1), range(0, 2)]
    """
    plain_tokens, plain_words = ([_plain(each) for each in side] for side in (tokens, words))
    _check_same_text("".join(plain_tokens), "".join(plain_words))
    owner = [number for number, word in enumerate(plain_words) for _ in word]  # the word of each character
    ranges = []
    begin = 0
    for token in plain_tokens:
        end = begin + len(token)
        ranges.append(range(owner[begin], owner[end - 1] + 1) if token else range(0))
        begin = end
    return ranges


def _plain(text: str) -> str:
    return "".join(strip_invisible(normalise_quotes(text)).split())


def _check_same_text(left: str, right: str) -> None:
    if left == right:
        return
    position = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    around = slice(max(position - 10, 0), position + 10)
    raise PolysemeError(
        f"two tokenizations of a sentence do not spell the same text: at character {position} one has {left[around]!r}, the "
        f"other {right[around]!r}; they may differ only in white space"
    )


def join(tokens: Sequence[str]) -> str:
    """Join tokens to running text, with spaces except next to Chinese, Japanese or Korean characters.

    In data that is split into single characters, adjacent letters and digits are joined too.

    >>> join(["in", "2019", "年", "5", "月"]), join(["1", "9", "年"])
    ('in 2019年5月', '19年')
    """
    wide = [_is_wide(token) for token in tokens]
    by_character = any(wide) and all(len(token) == 1 for token in tokens)
    parts = list(tokens[:1])
    for i in range(1, len(tokens)):
        apart = not (by_character or wide[i - 1] or wide[i])
        parts.append(f" {tokens[i]}" if apart else tokens[i])
    return "".join(parts)


def _is_wide(token: str) -> bool:
    """Whether it holds a character of East Asian width; emoji, which are wide too, do not count."""
    return any(unicodedata.east_asian_width(each) in "WF" and unicodedata.category(each) != "So" for each in token)
