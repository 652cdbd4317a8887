"""Where words stand in the text that they were cut from, so that what is said of words can be shown in the text itself.

No splitter loses anything but white space and invisible marks, so the characters of the words, counted off one after another,
are those of the text. Quotes may have been made straight on one side and not on the other, or escaped as the Penn Treebank
does it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.unicode_classes import INVISIBLE, strip_invisible
from polyseme.text.words import normalise_quotes, plain_word

CharSpan = tuple[int, int]
"""The first character, and the one behind the last."""


def word_offsets(words: Sequence[str], text: str) -> list[CharSpan]:
    """The place of each word in its text; an error where they spell another one.

    >>> word_offsets(["It", "'s", '"', "so", '"'], "It’s  “so”")
    [(0, 2), (2, 4), (6, 7), (7, 9), (9, 10)]
    """
    inked = [place for place, sign in enumerate(text) if not (sign.isspace() or sign in INVISIBLE)]
    spelt = normalise_quotes("".join(strip_invisible(text).split()))
    pieces = ["".join(strip_invisible(normalise_quotes(word)).split()) for word in words]
    if "".join(pieces) != spelt:
        pieces = [plain_word(word) for word in pieces]
    if "".join(pieces) != spelt:
        raise PolysemeError(
            f"{len(words)} words do not spell the text that they are to be found in, {text[:40]!r}...; they may differ from "
            "it in white space and in the form of quotes only"
        )
    found, begin = [], 0
    for piece in pieces:
        end = begin + len(piece)
        before = inked[begin - 1] + 1 if begin else 0
        found.append((inked[begin], inked[end - 1] + 1) if piece else (before, before))
        begin = end
    return found


def words_within(places: Sequence[CharSpan], begin: int, end: int) -> range:
    """The words that share a character with [begin, end); none where there is white space only.

    >>> words_within([(0, 2), (2, 4), (6, 7)], 3, 7)
    range(1, 3)
    """
    first = bisect_right(places, begin, key=lambda place: place[1])
    return range(first, max(bisect_left(places, end, key=lambda place: place[0]), first))
