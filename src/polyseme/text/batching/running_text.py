"""The words of shards with `</S> <S>` between sentences, as a model reads a document: a file beside them, written once.

Sentence `n` begins at `offsets[n] + 2 * n`, so that sentences and whole documents are slices of the same array.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from polyseme.base.files import atomic, wrap_os_errors
from polyseme.text.batching.stream import BEGIN, END
from polyseme.text.shards.files import lock_target, temporary_path
from polyseme.text.shards.shards import Shards

BETWEEN = 2
"""Special tokens between two sentences."""
_SENTENCES = 1 << 16  # that are written at a time


def running_text(shards: Shards) -> NDArray[np.uint32]:
    """Return the types of all words, each sentence followed by `</S> <S>`, (words + 2 * sentences,)."""
    if shards.folder is None:
        return np.concatenate(list(_parts(shards)))
    path, size = shards.folder / "running.bin", 4 * (shards.total + BETWEEN * len(shards))
    with lock_target(path):
        if not path.is_file() or path.stat().st_size != size:
            with atomic(path, part=temporary_path(path)) as part, part.open("wb") as file:
                for each in _parts(shards):
                    file.write(each.data)
    with wrap_os_errors(path, "read"):
        return np.memmap(path, dtype="<u4", mode="r")


def _parts(shards: Shards) -> Iterator[NDArray[np.uint32]]:
    for begin in range(0, len(shards), _SENTENCES):
        edges = np.asarray(shards.offsets[begin : begin + _SENTENCES + 1])
        ends = np.repeat(edges[1:] - edges[0], BETWEEN)
        yield np.insert(shards.words[edges[0] : edges[-1]], ends, np.tile([END, BEGIN], len(edges) - 1)).astype("<u4")
