"""Words that are read where they stand: a phrase in its sentence, where an encoder gives it other vectors than alone."""

from __future__ import annotations

from collections.abc import Sequence


class Excerpt(list[str]):
    """Some words of a longer text, as a list; equal to any list of the same words.

    >>> phrase = Excerpt(("not", "a", "good", "film"), 1, 4)
    >>> phrase == ["a", "good", "film"], whole_of(phrase), begin_of(phrase)
    (True, ('not', 'a', 'good', 'film'), 1)
    """

    def __init__(self, whole: Sequence[str], begin: int, end: int) -> None:
        super().__init__(whole[begin:end])
        self.whole, self.begin = tuple(whole), begin


def whole_of(text: Sequence[str]) -> tuple[str, ...]:
    """What an encoder reads to know these words: the text around them, or they themselves."""
    return text.whole if isinstance(text, Excerpt) else tuple(text)


def begin_of(text: Sequence[str]) -> int:
    """Where they begin in it."""
    return text.begin if isinstance(text, Excerpt) else 0
