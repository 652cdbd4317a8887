"""A text as subwords on disk, document by document, encoded once and memory-mapped: BERT and GPT are trained on it.

They are made from the shards of words, which other methods read too: the text is split once, and each distinct word is
tokenized once. The folder holds `pieces.bin` (32 bits per subword; the highest bit says that it continues a word),
`sentences.bin` (where each sentence begins, and where the last ends), `documents.bin` (the first sentence of each document,
and their number) and, written last, `manifest.json`. Text and tokenizer name the folder, so changed text or another tokenizer
never find old numbers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.progress import Advance
from polyseme.text.shards.files import build_once
from polyseme.text.shards.shards import Shards
from polyseme.text.subwords import SubwordTokenizer

CONTINUES = np.uint32(1 << 31)
_FILES = {"pieces.bin": "<u4", "sentences.bin": "<i8", "documents.bin": "<i8"}
_BLOCK_SENTENCES, _BLOCK_SUBWORDS = 1 << 16, 1 << 22  # encoded together; counted together


class SubwordShards:
    """Documents as subwords; `len()` is their number."""

    def __init__(self, marked: NDArray[np.uint32], sentences: NDArray[np.int64], documents: NDArray[np.int64]) -> None:
        arrays = map(np.asarray, (marked, sentences, documents))  # slices of a memmap itself are slow
        self.marked, self.sentences, self.documents = arrays

    def __len__(self) -> int:
        return len(self.documents) - 1

    def document(self, number: int) -> NDArray[np.int64]:
        """Return where the sentences of a document begin, and where the last ends, (sentences + 1,)."""
        return self.sentences[self.documents[number] : self.documents[number + 1] + 1]

    def subwords(self, begin: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return subwords, and which of them begin a word, (end - begin,) each."""
        some = self.marked[begin:end]
        return (some & ~CONTINUES).astype(np.int64), (some & CONTINUES) == 0

    def gather(self, begins: NDArray[np.int64], lengths: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the same for several spans, concatenated, (sum of lengths,) each."""
        shifts = begins - (np.cumsum(lengths) - lengths)
        some = self.marked[np.arange(int(lengths.sum())) + np.repeat(shifts, lengths)]
        return (some & ~CONTINUES).astype(np.int64), (some & CONTINUES) == 0

    def words(self, numbers: range) -> int:
        """Return the number of words of consecutive documents."""
        begin, end = (int(self.sentences[self.documents[at]]) for at in (numbers.start, numbers.stop))
        blocks = (self.marked[at : min(at + _BLOCK_SUBWORDS, end)] for at in range(begin, end, _BLOCK_SUBWORDS))
        return sum(int(((block & CONTINUES) == 0).sum()) for block in blocks)

    @classmethod
    def build(cls, words: Shards, tokenizer: SubwordTokenizer, progress: Advance | None = None) -> SubwordShards:
        """Return the subwords of a text, from a folder beside that of its words; encode them if they are not there."""
        assert words.folder is not None
        name = hashlib.sha256(f"{words.fingerprint} {tokenizer.fingerprint}".encode()).hexdigest()[:16]
        target = words.folder.parent / f"pieces-{name}"
        build_once(target, lambda: _is_complete(target) or None, lambda part: _write(words, tokenizer, part, progress))
        with wrap_os_errors(target, "read"):
            arrays = [np.memmap(target / name, dtype=dtype, mode="r") for name, dtype in _FILES.items()]
        return cls(*arrays)


def _is_complete(folder: Path) -> bool:
    path = folder / "manifest.json"
    if not path.is_file():
        return False
    sizes = read_json(path)
    return all((folder / name).is_file() and (folder / name).stat().st_size == sizes.get(name) for name in _FILES)


def _write(words: Shards, tokenizer: SubwordTokenizer, folder: Path, progress: Advance | None) -> None:
    if not words.total:
        raise PolysemeError("the text has no words to train on: add text")
    table, begins = _table(words, tokenizer)
    sizes, documents = np.diff(begins), words.documents
    sentences = np.zeros(len(words) + 1, dtype="<i8")
    with wrap_os_errors(folder, "write"), (folder / "pieces.bin").open("wb") as file:
        for first in range(0, len(words), _BLOCK_SENTENCES):
            offsets = np.asarray(words.offsets[first : first + _BLOCK_SENTENCES + 1])
            types = np.asarray(words.words[offsets[0] : offsets[-1]])
            ends = np.concatenate([[0], np.cumsum(sizes[types])])  # in subwords of this block
            at = np.arange(ends[-1]) + np.repeat(begins[types] - ends[:-1], sizes[types])
            file.write(table[at].tobytes())
            sentences[first + 1 : first + len(offsets)] = sentences[first] + ends[offsets[1:] - offsets[0]]
            if progress is not None:
                progress(len(types))
    starts = np.arange(len(words) + 1) if documents is None else np.asarray(documents)
    for name, values in (("sentences.bin", sentences), ("documents.bin", starts)):
        (folder / name).write_bytes(values.astype("<i8").tobytes())
    lengths = {name: (folder / name).stat().st_size for name in _FILES}
    write_text(folder / "manifest.json", json.dumps(lengths) + "\n")


def _table(words: Shards, tokenizer: SubwordTokenizer) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the marked subwords of every distinct word, one after another, and where those of each begin and the last end."""
    parts, sizes = [], [np.zeros(1, dtype=np.int64)]
    for block in words.type_blocks():
        found = tokenizer.encode_words(block)
        lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
        marked = np.fromiter((token for ids in found for token in ids), dtype="<u4", count=int(lengths.sum())) | CONTINUES
        marked[np.cumsum(lengths) - lengths] &= ~CONTINUES
        parts.append(marked)
        sizes.append(lengths)
    return np.concatenate(parts), np.cumsum(np.concatenate(sizes))
