"""The character ids of every distinct word of shards: a file beside them, written once and memory-mapped.

They take about 100 bytes per word, and a large corpus has millions of words, so they stay on disk and training looks only at
the words of a batch. `spelling-<scheme>.bin` holds the rows of all types, then the used length of each row, 16 bits each (32
for a larger alphabet), little-endian. It appears complete or not at all, and is removed with its shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.files import atomic, wrap_os_errors
from polyseme.text.characters import Characters
from polyseme.text.shards.files import lock_target, temporary_path
from polyseme.text.shards.shards import Shards


class CharacterIds:
    """The characters of all types."""

    def __init__(self, ids: NDArray[np.integer], lengths: NDArray[np.integer]) -> None:
        self.ids = ids
        """(types, max_length)."""
        self.lengths = lengths
        """Used length of each row, special characters included, (types,)."""

    @classmethod
    def of(cls, shards: Shards, characters: Characters) -> CharacterIds:
        """Return those of shards: from the file beside them, which is written if missing; in memory if shards have none."""
        if shards.folder is None:
            blocks = list(_encoded(shards, characters))
            return cls(*(np.concatenate(parts) for parts in zip(*blocks, strict=True)))
        path = shards.folder / f"spelling-{characters.name}{shards.variant}.bin"
        if not _is_complete(path, shards, characters):
            with lock_target(path):
                if not _is_complete(path, shards, characters):
                    _write(path, shards, characters)
        count, width = len(shards.counts), characters.max_length
        with wrap_os_errors(path, "read"):
            numbers = np.memmap(path, dtype=_dtype(characters), mode="r").view(np.ndarray)
        return cls(numbers[: count * width].reshape(count, width), numbers[count * width :])


def _write(path: Path, shards: Shards, characters: Characters) -> None:
    used = []
    with atomic(path, part=temporary_path(path)) as part, part.open("wb") as file:
        for ids, lengths in _encoded(shards, characters):
            file.write(ids.data)
            used.append(lengths)
        file.write(np.concatenate(used).data)


def _encoded(shards: Shards, characters: Characters) -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]:
    for block in shards.type_blocks():
        ids, lengths = characters.encode(block)
        yield ids.astype(_dtype(characters)), lengths.astype(_dtype(characters))


def _dtype(characters: Characters) -> np.dtype[np.integer]:
    return np.dtype("<i2" if max(characters.symbols, characters.max_length) < 1 << 15 else "<i4")


def _is_complete(path: Path, shards: Shards, characters: Characters) -> bool:
    size = len(shards.counts) * (characters.max_length + 1) * _dtype(characters).itemsize
    return path.is_file() and path.stat().st_size == size
