"""Encodes a corpus to the files of its shards, in one pass over the text.

Words get ids as they come; when all are counted, the ids are put in the order of the counts, in place and a piece at a
time. Against a first pass that only counts, this reads and splits the text once, which is nearly all of the time.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError
from polyseme.base.progress import Advance
from polyseme.text.blocks import Block
from polyseme.text.corpus import Corpus
from polyseme.text.counts import LONGEST, MARKS
from polyseme.text.shard_files import COUNTS, FORMAT, SENTENCES, TYPES, WORDS, Manifest, sha256

_PIECE = 1 << 22  # ids renumbered at a time: 16 MB


def write_shards(corpus: Corpus, folder: Path, fingerprint: str, progress: Advance | None = None) -> None:
    """Fill an empty folder with the shards of a corpus, the manifest last."""
    types = _Types()
    words = sentences = 0
    with (folder / WORDS).open("wb") as word_file, (folder / SENTENCES).open("wb") as sentence_file:
        _write(sentence_file, np.zeros(1, dtype="<i8"))
        for block in corpus.blocks(progress):
            _write(word_file, types.encode(block).astype("<u4", copy=False))
            _write(sentence_file, (words + np.cumsum(block.lengths)).astype("<i8", copy=False))
            words += len(block.ids)
            sentences += len(block.lengths)
    if not words:
        raise PolysemeError(f"{corpus.source.files[0].name}{_others(corpus)}: there are no words to encode")
    order = types.order()
    (folder / TYPES).write_text("".join(f"{word}\n" for word in types.words(order)), encoding="utf-8", newline="\n")
    with (folder / COUNTS).open("wb") as count_file:
        _write(count_file, types.counts()[order].astype("<i8", copy=False))
    _renumber(folder / WORDS, order)
    if corpus.fingerprint() != fingerprint:
        raise PolysemeError("the text changed while it was read; start again when nothing writes to it")
    Manifest(
        polyseme_shards=FORMAT,
        fingerprint=fingerprint,
        words=words,
        sentences=sentences,
        types=len(order),
        types_sha256=sha256(folder / TYPES),
        counts_sha256=sha256(folder / COUNTS),
    ).write(folder)


class _Types:
    """The distinct words so far, numbered as they come."""

    def __init__(self) -> None:
        self._ids = {mark: place for place, mark in enumerate(MARKS)}
        self._counts: NDArray[np.int64] = np.zeros(1 << 16, dtype=np.int64)

    def encode(self, block: Block) -> NDArray[np.uint32]:
        """The number of every word of a block, (words,), which is counted too."""
        known = self._ids
        numbers = (known.setdefault(word[:LONGEST], len(known)) for word in block.types)
        ids = np.fromiter(numbers, dtype=np.uint32, count=len(block.types))
        while len(known) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        np.add.at(self._counts, ids, block.counts())  # cropped words of one block may have become equal
        return ids[block.ids]

    def counts(self) -> NDArray[np.int64]:
        """How often each came, (types,)."""
        return self._counts[: len(self._ids)]

    def order(self) -> NDArray[np.int64]:
        """The numbers in their final order: marks, then by falling count, ties in the order of the words."""
        words = list(self._ids)
        falling = (-self.counts()).tolist()
        order = list(range(len(MARKS), len(words)))
        order.sort(key=words.__getitem__)
        order.sort(key=falling.__getitem__)  # stable, so that ties stay in the order of the words
        return np.array([*range(len(MARKS)), *order], dtype=np.int64)

    def words(self, order: NDArray[np.int64]) -> list[str]:
        """The words in that order."""
        words = list(self._ids)
        return [words[place] for place in order.tolist()]


def _renumber(path: Path, order: NDArray[np.int64]) -> None:
    final = np.empty(len(order), dtype=np.uint32)
    final[order] = np.arange(len(order), dtype=np.uint32)
    ids = np.memmap(path, dtype="<u4", mode="r+")
    for start in range(0, len(ids), _PIECE):
        ids[start : start + _PIECE] = final[ids[start : start + _PIECE]]
    ids.flush()


def _write(file: BinaryIO, array: NDArray[np.generic]) -> None:
    file.write(np.ascontiguousarray(array).data)  # not `tofile`, which does not say that the disk is full


def _others(corpus: Corpus) -> str:
    more = len(corpus.source.files) - 1
    return f" and {more:,} more files" if more else ""
