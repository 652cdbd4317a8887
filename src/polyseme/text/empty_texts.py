"""Texts without a word: a model gives numbers for them too, which mean nothing, so the user is told which they are."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from polyseme.base.display import count

PREDICTION = "whose prediction means nothing"
VECTOR = "whose vectors are zeros"
_SHOWN = 5  # numbers that are named
_caller_names_them: ContextVar[bool] = ContextVar("caller_names_empty_texts", default=False)
_log = logging.getLogger(__name__)


def has_text(text: str | Sequence[str]) -> bool:
    """Whether a text, or a list of words, has anything but blanks."""
    return bool(text.strip()) if isinstance(text, str) else any(word.strip() for word in text)


def is_missing(cell: object) -> bool:
    """Whether a cell of a table in memory is empty: None, NaN, or NA of pandas, which need not be installed.

    >>> [is_missing(cell) for cell in (None, float("nan"), "", 3.0)]
    [True, True, False, False]
    """
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def without_missing(cells: Iterable[Any]) -> list[Any]:
    """Return the cells of a column of texts; an empty one is an empty text.

    >>> without_missing(["a cat", None])
    ['a cat', '']
    """
    return ["" if is_missing(cell) else cell for cell in cells]


def about_empty(numbers: Sequence[int], what: str, noun: str = "line") -> str:
    """A sentence that names texts without a word by their numbers, and says what to think of the answer.

    >>> about_empty([2, 4], "whose prediction means nothing")
    '2 texts without a word (lines 2, 4), whose prediction means nothing'
    """
    more = [f"{len(numbers) - _SHOWN} more"] if len(numbers) > _SHOWN else []
    named = f"{noun if len(numbers) == 1 else f'{noun}s'} {', '.join([*map(str, numbers[:_SHOWN]), *more])}"
    return f"{count(len(numbers), 'text')} without a word ({named}), {what}"


@contextmanager
def caller_names_empty_texts() -> Iterator[None]:
    """Inside, `warn_of_empty` is silent: the caller knows better numbers, such as lines of a file."""
    before = _caller_names_them.set(True)
    try:
        yield
    finally:
        _caller_names_them.reset(before)


def warn_of_empty(
    texts: Sequence[str | Sequence[str]],
    numbers: Iterable[int] | None = None,
    noun: str = "item",
    what: str = PREDICTION,
) -> None:
    """Warn of texts without a word by their numbers, from 0 by default, and say what to think of the answers."""
    empty = [number for text, number in zip(texts, numbers or range(len(texts)), strict=True) if not has_text(text)]
    if empty and not _caller_names_them.get():
        _log.warning("%s", about_empty(empty, what, noun))
