"""Texts without a word: a model gives numbers for them too, which mean nothing, so the user is told which they are."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.base.display import count

_SHOWN = 5  # numbers that are named


def has_text(text: str | Sequence[str]) -> bool:
    """Whether a text, or a list of words, has anything but blanks."""
    return bool(text.strip()) if isinstance(text, str) else any(word.strip() for word in text)


def about_empty(numbers: Sequence[int], what: str, noun: str = "line") -> str:
    """A sentence that names texts without a word by their numbers, and says what to think of the answer.

    >>> about_empty([2, 4], "whose prediction means nothing")
    '2 texts without a word (lines 2, 4), whose prediction means nothing'
    """
    more = [f"{len(numbers) - _SHOWN} more"] if len(numbers) > _SHOWN else []
    named = f"{noun if len(numbers) == 1 else f'{noun}s'} {', '.join([*map(str, numbers[:_SHOWN]), *more])}"
    return f"{count(len(numbers), 'text')} without a word ({named}), {what}"
