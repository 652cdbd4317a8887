"""The same text cut in two ways: which words a token touches.

Data may be cut otherwise than a model reads: Chinese names are tagged character by character, and the model knows words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.unicode_classes import strip_invisible
from polyseme.text.words import normalise_quotes


def overlaps(tokens: Sequence[str], words: Sequence[str]) -> list[range]:
    """For every token the range of the words that share a character with it.

    Both must spell the same text once white space and invisible marks are taken out and quotes are straight. A token of
    these alone touches no word.

    >>> overlaps(["北", "京", "市长"], ["北京市", "长"])
    [range(0, 1), range(0, 1), range(0, 2)]
    """
    inked_tokens, inked_words = ([_inked(each) for each in side] for side in (tokens, words))
    _same_text("".join(inked_tokens), "".join(inked_words))
    owner = [number for number, word in enumerate(inked_words) for _ in word]  # of each character
    found = []
    begin = 0
    for token in inked_tokens:
        end = begin + len(token)
        found.append(range(owner[begin], owner[end - 1] + 1) if token else range(0))
        begin = end
    return found


def _inked(text: str) -> str:
    return "".join(strip_invisible(normalise_quotes(text)).split())


def _same_text(left: str, right: str) -> None:
    if left == right:
        return
    place = next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
    around = slice(max(place - 10, 0), place + 10)
    raise PolysemeError(
        f"two cuts of a sentence do not spell the same text: at character {place} one has {left[around]!r}, "
        f"the other {right[around]!r}; they may differ in white space only"
    )


def join(tokens: Sequence[str]) -> str:
    """Tokens as running text: blanks between them, but not beside Chinese, Japanese or Korean characters.

    In data that is cut into single characters, neighbouring letters and digits belong together too.

    >>> join(["in", "2019", "年", "5", "月"]), join(["1", "9", "年"])
    ('in 2019年5月', '19年')
    """
    wide = [_wide(token) for token in tokens]
    by_character = any(wide) and all(len(token) == 1 for token in tokens)
    pieces = list(tokens[:1])
    for place in range(1, len(tokens)):
        apart = not (by_character or wide[place - 1] or wide[place])
        pieces.append(f" {tokens[place]}" if apart else tokens[place])
    return "".join(pieces)


def _wide(token: str) -> bool:
    """Whether it holds a character of East Asian width that is no picture (emoji are wide too)."""
    return any(unicodedata.east_asian_width(each) in "WF" and unicodedata.category(each) != "So" for each in token)
