"""Dev and test examples whose texts are in the training data too: a score on them says little of new texts.

Texts count by their length, because short ones (headings, "Thank you!") are in any two files of a kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyseme.tasks.base import Task
from polyseme.text.words import get_splitter

MIN_SHARE = 0.1
"""Of the characters: so much is reported."""
FEWEST = 10
"""Fewer examples are a trial."""


def leaked_examples(task: type[Task], train: Sequence[Any], scored: Sequence[Any]) -> int:
    """Return how many of the scored examples have texts of training examples, but for case and blanks; 0 if few have."""
    known = {_texts(task, example) for example in train}
    keys = [_texts(task, example) for example in scored]
    leaked = [key for key in keys if key in known]
    return len(leaked) if len(leaked) >= FEWEST and _characters(leaked) > MIN_SHARE * _characters(keys) else 0


def leak_message(leaked: int, total: int) -> str:
    """Say how many examples are in the training data too.

    >>> leak_message(2, 20)
    '2 of 20 examples have texts of the training data, so its scores say little of new texts: give others'
    """
    return (
        f"{leaked:,} of {total:,} examples have texts of the training data, so its scores say little of new texts: give others"
    )


def _texts(task: type[Task], example: Any) -> tuple[str, ...]:
    texts = task.example_texts(example, get_splitter("whitespace"))
    return tuple(" ".join(words).casefold() for words in texts)


def _characters(keys: Sequence[tuple[str, ...]]) -> int:
    return sum(len(text) for key in keys for text in key)
