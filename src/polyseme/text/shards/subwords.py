"""A text as subwords on disk, document by document, encoded once and memory-mapped: BERT and GPT are trained on it.

A line of the text is a document. The folder holds `pieces.bin` (32 bits per subword; the highest bit says that it continues a
word), `sentences.bin` (where each sentence begins, and where the last ends), `documents.bin` (the first sentence of each
document, and their number) and, written last, `manifest.json`. Text and tokenizer name the folder, so changed text or another
tokenizer never find old numbers.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.files.parallel_map import parallel_map
from polyseme.text.files.reader import chunk_text
from polyseme.text.shards.blocks import TextSplitter
from polyseme.text.shards.files import build_once
from polyseme.text.subwords import SubwordTokenizer

CONTINUES = np.uint32(1 << 31)
_FILES = {"pieces.bin": "<u4", "sentences.bin": "<i8", "documents.bin": "<i8"}
_BLOCK_WORDS, _BLOCK_SUBWORDS = 1 << 16, 1 << 22  # tokenized together; counted together


@dataclass(frozen=True)
class _Documents:
    """What a worker does: split lines into documents of sentences of words."""

    splitter: TextSplitter

    def __call__(self, text: str) -> list[list[list[str]]]:
        found = (self.splitter.sentences_of(line) for line in text.split("\n"))
        return [sentences for each in found if (sentences := [words for words in each if words])]


def documents(corpus: Corpus) -> Iterator[list[list[str]]]:
    """Yield the documents of a corpus, each a list of sentences of words; empty ones are dropped."""
    for _, found in parallel_map(_Documents(corpus.text_splitter), corpus.source.chunks(), chunk_text, corpus.processes()):
        yield from found


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
    def build(cls, corpus: Corpus, tokenizer: SubwordTokenizer, folder: Path, progress: Advance | None = None) -> SubwordShards:
        """Return the subwords of a corpus, from a subfolder of `folder` or of `corpus.shards`; encode them if not there."""
        name = hashlib.sha256(f"{corpus.fingerprint()} {tokenizer.fingerprint}".encode()).hexdigest()[:16]
        target = (corpus.shards or folder) / f"pieces-{name}"
        build_once(target, lambda: _is_complete(target) or None, lambda part: _write(corpus, tokenizer, part, progress))
        with wrap_os_errors(target, "read"):
            arrays = [np.memmap(target / name, dtype=dtype, mode="r") for name, dtype in _FILES.items()]
        return cls(*arrays)


def _is_complete(folder: Path) -> bool:
    path = folder / "manifest.json"
    if not path.is_file():
        return False
    sizes = read_json(path)
    return all((folder / name).is_file() and (folder / name).stat().st_size == sizes.get(name) for name in _FILES)


def _write(corpus: Corpus, tokenizer: SubwordTokenizer, folder: Path, progress: Advance | None) -> None:
    sentences, starts, total = array("q", [0]), array("q", [0]), 0
    with wrap_os_errors(folder, "write"), (folder / "pieces.bin").open("wb") as file:
        for some in _blocks(corpus):
            flat = iter(tokenizer.encode_words([word for document in some for sentence in document for word in sentence]))
            marked: list[int] = []
            words = 0
            for document in some:
                for sentence in document:
                    for _ in sentence:
                        ids = next(flat)
                        marked += [ids[0], *(token | int(CONTINUES) for token in ids[1:])]
                    words += len(sentence)
                    sentences.append(total + len(marked))
                starts.append(len(sentences) - 1)
            file.write(np.array(marked, dtype="<u4").tobytes())
            total += len(marked)
            if progress is not None:
                progress(words)
    if not total:
        raise PolysemeError("the text has no words to train on: add text")
    for name, values in (("sentences.bin", sentences), ("documents.bin", starts)):
        (folder / name).write_bytes(np.array(values, dtype="<i8").tobytes())
    sizes = {name: (folder / name).stat().st_size for name in _FILES}
    write_text(folder / "manifest.json", json.dumps(sizes) + "\n")


def _blocks(corpus: Corpus) -> Iterator[list[list[list[str]]]]:
    """Yield documents in blocks."""
    some: list[list[list[str]]] = []
    words = 0
    for document in documents(corpus):
        some.append(document)
        words += sum(map(len, document))
        if words >= _BLOCK_WORDS:
            yield some
            some, words = [], 0
    if some:
        yield some
