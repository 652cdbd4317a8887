"""Encodes a corpus to the files of its shards, in one pass over the text.

Words get ids as they come (`polyseme.text.counting.vocabulary_index`). When all are counted, the ids are changed to the order
of the counts, in place and in slices. Chosen against a first pass that only counts: reading and splitting the text, which
takes nearly all of the time, is done once.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError
from polyseme.base.hashing import hash_file
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.counting.vocabulary_index import VocabularyIndex
from polyseme.text.shards.files import COUNTS, DOCUMENTS, FORMAT, SENTENCES, TYPES, WORDS, ShardManifest

_SLICE = 1 << 22  # ids that are changed at a time: 16 MB


def write_shards(corpus: Corpus, folder: Path, fingerprint: str, progress: Advance | None = None) -> None:
    """Write the shards of a corpus to an empty folder, the manifest last."""
    words = sentences = documents = 0
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        types = VocabularyIndex(Path(scratch))
        with (
            (folder / WORDS).open("wb") as word_file,
            (folder / SENTENCES).open("wb") as sentence_file,
            (folder / DOCUMENTS).open("wb") as document_file,
        ):
            _write(sentence_file, np.zeros(1, dtype="<i8"))
            _write(document_file, np.zeros(1, dtype="<i8"))
            for block in corpus.blocks(progress):
                _write(word_file, types.encode(block).astype("<u4", copy=False))
                _write(sentence_file, (words + np.cumsum(block.lengths)).astype("<i8", copy=False))
                _write(document_file, (sentences + np.cumsum(block.documents)).astype("<i8", copy=False))
                words += len(block.ids)
                sentences += len(block.lengths)
                documents += len(block.documents)
        if not words:
            raise PolysemeError(f"{corpus.source.files[0].name}{_others(corpus)}: the text has no words")
        ordered = types.ordered()
        with (folder / TYPES).open("wb") as type_file:
            type_file.writelines(ordered.lines())
    with (folder / COUNTS).open("wb") as count_file:
        _write(count_file, ordered.counts.astype("<i8", copy=False))
    _renumber(folder / WORDS, ordered.final)
    if corpus.fingerprint() != fingerprint:
        raise PolysemeError("the text changed while it was read; start again when no other program writes to it")
    ShardManifest(
        polyseme_shards=FORMAT,
        fingerprint=fingerprint,
        words=words,
        sentences=sentences,
        types=len(ordered.counts),
        documents=documents,
        types_sha256=hash_file(folder / TYPES),
        counts_sha256=hash_file(folder / COUNTS),
    ).write(folder)


def _renumber(path: Path, final: NDArray[np.uint32]) -> None:
    ids = np.memmap(path, dtype="<u4", mode="r+")
    for start in range(0, len(ids), _SLICE):
        ids[start : start + _SLICE] = final[ids[start : start + _SLICE]]
    ids.flush()


def _write(file: BinaryIO, array: NDArray[np.generic]) -> None:
    file.write(np.ascontiguousarray(array).data)  # not `tofile`, which does not report a full disk


def _others(corpus: Corpus) -> str:
    more = len(corpus.source.files) - 1
    return f" and {more:,} more files" if more else ""
