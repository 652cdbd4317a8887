"""How every distinct word of shards is spelled: a file beside them, written once and mapped into memory.

100 bytes a word, which a large corpus has millions of, so that they stay on the disk and training looks at the words of a
batch only. `spelling-<scheme>.bin` holds the rows of all types, then how much of each row is used, 16 bits each (32 where an
alphabet is larger), little-endian. It appears whole or not at all, and goes with its shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.files import atomic, wrap_os_errors
from polyseme.text.characters import Characters
from polyseme.text.shards.files import one_at_a_time, part_of
from polyseme.text.shards.shards import Shards


class CharacterIds:
    """The characters of all types."""

    def __init__(self, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> None:
        self.ids = ids
        """(types, max_length)."""
        self.lengths = lengths
        """How much of each row is used, marks included, (types,)."""

    @classmethod
    def of(cls, shards: Shards, speller: Characters) -> CharacterIds:
        """That of shards: found beside them, or written now; where they have no files, made in memory."""
        if shards.folder is None:
            blocks = list(_spelled(shards, speller))
            return cls(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        path = shards.folder / f"spelling-{speller.name}{shards.variant}.bin"
        if not _whole(path, shards, speller):
            with one_at_a_time(path):
                if not _whole(path, shards, speller):
                    _write(path, shards, speller)
        count, width = len(shards.counts), speller.max_length
        with wrap_os_errors(path, "read"):
            numbers = np.memmap(path, dtype=_kind(speller), mode="r").view(np.ndarray)
        return cls(numbers[: count * width].reshape(count, width), numbers[count * width :])


def _write(path: Path, shards: Shards, speller: Characters) -> None:
    used = []
    with atomic(path, part=part_of(path)) as part, part.open("wb") as file:
        for ids, lengths in _spelled(shards, speller):
            file.write(ids.data)
            used.append(lengths)
        file.write(np.concatenate(used).data)


def _spelled(shards: Shards, speller: Characters) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]:
    for block in shards.type_blocks():
        ids, lengths = speller.encode(block)
        yield ids.astype(_kind(speller)), lengths.astype(_kind(speller))


def _kind(speller: Characters) -> np.dtype[np.integer]:
    return np.dtype("<i2" if max(speller.symbols, speller.max_length) < 1 << 15 else "<i4")


def _whole(path: Path, shards: Shards, speller: Characters) -> bool:
    size = len(shards.counts) * (speller.max_length + 1) * _kind(speller).itemsize
    return path.is_file() and path.stat().st_size == size
