"""Dev and test examples whose texts are in the training data too: a score on them says little of new texts.

Texts count by their length, because short ones (headings, "Thank you!") are in any two files of a kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyseme.base.files import read_json
from polyseme.base.hashing import hash_file
from polyseme.tasks.base import Task
from polyseme.text.words import get_splitter

MIN_SHARE = 0.1
"""Of the characters: so much is reported."""
FEWEST = 10
"""Fewer examples are a trial."""
TRAINING_FILE = "training_file"
"""In the result of a training: a hash of its file."""


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


def file_hash(path: str | Path | None) -> str | None:
    """Return a hash of a file's content; None: it is no file, but perhaps a folder."""
    return hash_file(Path(path)) if path is not None and Path(path).is_file() else None


def is_training_file(result: Path, data: str | Path) -> bool:
    """Whether a task, by the file of its result, was trained on a file, under this name or another."""
    trained_on = read_json(result).get(TRAINING_FILE) if result.is_file() else None
    return trained_on is not None and trained_on == file_hash(data)


def _texts(task: type[Task], example: Any) -> tuple[str, ...]:
    texts = task.example_texts(example, get_splitter("whitespace"))
    return tuple(" ".join(words).casefold() for words in texts)


def _characters(keys: Sequence[tuple[str, ...]]) -> int:
    return sum(len(text) for key in keys for text in key)
