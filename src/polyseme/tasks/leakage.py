"""Dev and test examples whose texts are in the training data too: a score on them says little of new texts.

Texts count by their length, because short ones (headings, "Thank you!") are in any two files of a kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polyseme.base.array_file import save_array
from polyseme.base.errors import FormatError
from polyseme.text.words import get_splitter

if TYPE_CHECKING:
    from polyseme.tasks.base import Task

MIN_SHARE = 0.1
"""Of the characters: so much is reported."""
MIN_LEAKED_EXAMPLES = 3
"""Fewer examples may be chance."""
FILE = "training-texts.npy"
"""In the folder of a trained task: a hash of the texts of each example that it was trained on."""
TextHashes: TypeAlias = NDArray[np.uint64]
"""A hash for each example, of its texts without case and blanks."""


def text_hashes(task: type[Task], examples: Sequence[Any]) -> TextHashes:
    """Return the hash of each example, (examples,)."""
    digests = (
        hashlib.blake2b("\0".join(_texts(task, example)).encode("utf-8", "replace"), digest_size=8) for example in examples
    )
    return np.frombuffer(b"".join(digest.digest() for digest in digests), dtype="<u8")


def leaked_examples(task: type[Task], known: TextHashes, scored: Sequence[Any]) -> int:
    """Return how many of the scored examples have texts of training examples, but for case and blanks; 0 if few have."""
    leaked = np.isin(text_hashes(task, scored), known)
    sizes = np.array([sum(map(len, _texts(task, example))) for example in scored])
    return int(leaked.sum()) if leaked.sum() >= MIN_LEAKED_EXAMPLES and sizes[leaked].sum() > MIN_SHARE * sizes.sum() else 0


def leak_message(leaked: int, total: int) -> str:
    """Say how many examples are in the training data too.

    >>> leak_message(2, 20)
    '2 of 20 examples have texts of the training data, so its scores say little of new texts: give others'
    """
    return (
        f"{leaked:,} of {total:,} examples have texts of the training data, so its scores say little of new texts: give others"
    )


def write_text_hashes(folder: Path, hashes: TextHashes) -> None:
    """Keep the hashes of the training data in the folder of a task."""
    save_array(folder / FILE, np.unique(hashes))


def read_text_hashes(folder: Path) -> TextHashes:
    """Return the hashes of the training data of a task; none, if its folder has none."""
    path = folder / FILE
    if not path.is_file():
        return np.empty(0, np.uint64)
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise FormatError(path, f"cannot be read ({error})") from error
    if found.dtype != np.uint64 or found.ndim != 1:
        raise FormatError(path, f"has numbers of kind {found.dtype} in shape {found.shape}; expected a row of uint64")
    return found


def _texts(task: type[Task], example: Any) -> tuple[str, ...]:
    texts = task.example_texts(example, get_splitter("whitespace"))
    return tuple(" ".join(words).casefold() for words in texts)
