"""Character offsets of words in the text that they were split from, so that results can be shown in the text itself.

No splitter drops anything but white space and invisible characters, so the characters of the words in order are those of the
text. Quotes may be straight on one side and curly on the other, or escaped as in the Penn Treebank.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from polyseme.base.errors import PolysemeError
from polyseme.text.splitting.unicode_classes import INVISIBLE, strip_invisible
from polyseme.text.words import normalise_quotes, plain_word

CharSpan = tuple[int, int]
"""The first character, and the one after the last."""


def word_offsets(words: Sequence[str], text: str) -> list[CharSpan]:
    """Return the character span of each word; raise an error if the words do not spell the text.

    >>> word_offsets(["It", "'s", '"', "so", '"'], "It’s  “so”")
    [(0, 2), (2, 4), (6, 7), (7, 9), (9, 10)]
    """
    if text.isascii() and (found := _as_written(words, text)) is not None:
        return found
    visible = [offset for offset, sign in enumerate(text) if not (sign.isspace() or sign in INVISIBLE)]
    spelling = normalise_quotes("".join(strip_invisible(text).split()))
    plain = ["".join(strip_invisible(normalise_quotes(word)).split()) for word in words]
    if "".join(plain) != spelling:
        plain = [plain_word(word) for word in plain]
    if "".join(plain) != spelling:
        raise PolysemeError(
            f"the {len(words)} words do not spell the text {text[:40]!r}...; they may differ from it only in white space and "
            "in the form of quotes"
        )
    spans, begin = [], 0
    for word in plain:
        end = begin + len(word)
        previous = visible[begin - 1] + 1 if begin else 0
        spans.append((visible[begin], visible[end - 1] + 1) if word else (previous, previous))
        begin = end
    return spans


def offsets_if_same(words: Sequence[str], text: str) -> list[CharSpan] | None:
    """Return the character span of each word; None if a splitter of the caller's has changed characters of the text."""
    try:
        return word_offsets(words, text)
    except PolysemeError:
        return None


def _as_written(words: Sequence[str], text: str) -> list[CharSpan] | None:
    """The same where each word stands in the text as it is, which is nearly always and quicker; None: it does not."""
    spans, end = [], 0
    if " ".join(words) == text and [*words] == text.split():  # split at single blanks: quicker still
        for word in words:
            spans.append((end, end + len(word)))
            end += len(word) + 1
        return spans
    for word in words:
        begin = text.find(word, end)
        if begin < 0 or word != word.strip() or (begin > end and not text[end:begin].isspace()):
            return None
        spans.append((begin, end := begin + len(word)))
    return spans if not text[end:].strip() else None


def words_within(spans: Sequence[CharSpan], begin: int, end: int) -> range:
    """Return the words that share a character with [begin, end); none if there is only white space.

    >>> words_within([(0, 2), (2, 4), (6, 7)], 3, 7)
    range(1, 3)
    """
    first = bisect_right(spans, begin, key=lambda span: span[1])
    return range(first, max(bisect_left(spans, end, key=lambda span: span[0]), first))


def spelled_prefix(words: list[str], text: str) -> str:
    """Return the part of a text that its first words spell: the shortest with as many visible characters.

    >>> spelled_prefix(["a", "cat"], "a  cat, a dog")
    'a  cat'
    """
    wanted = sum(len("".join(word.split())) for word in words)
    for end, sign in enumerate(text):
        if wanted <= 0:
            return text[:end]
        wanted -= not sign.isspace()
    return text
