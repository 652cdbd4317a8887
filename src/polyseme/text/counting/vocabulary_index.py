"""A vocabulary index: distinct words get ids and exact counts as they come and are sorted at the end, in bounded memory.

When memory holds more than a limit of words they are written to a file, sorted by word, and dropped; a word that occurs again
later gets another id. At the end all such runs are merged, which shows which ids are one word. Memory then holds some thirty
bytes per distinct word, and a dictionary of at most the limit. Chosen against a sketch (which is never exact) and against
dropping rare words on the way (which depends on the order of the text). No order depends on a hash.
"""

from __future__ import annotations

import heapq
import itertools
import mmap
import tempfile
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.files import wrap_os_errors
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.shards.blocks import Block
from polyseme.text.vocabulary import MAX_WORD_LENGTH, SPECIAL_TOKENS, Vocabulary

LIMIT = 1 << 19
"""Words in memory: about 80 MB."""

_Entry = tuple[str, int, int]
"""A word, its id, its count."""


@dataclass(frozen=True)
class SortedVocabulary:
    """Distinct words in their final order: special tokens, then by falling count, ties in the order of the words."""

    counts: NDArray[np.int64]
    """How often each occurs, (types,)."""
    final: NDArray[np.uint32]
    """The final id of each temporary id, (ids,)."""
    _file: Path
    _ends: NDArray[np.int64]
    _order: NDArray[np.int64]

    def lines(self) -> Iterator[bytes]:
        """Yield the words, each with a line end."""
        with self._file.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            for i in self._order:
                yield text[self._ends[i] : self._ends[i + 1]]


class VocabularyIndex:
    """Ids and counts of the distinct words so far; `folder` holds temporary files, which the caller removes."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self._folder, self._limit = folder, LIMIT if limit is None else limit
        self._runs: list[Path] = []
        self._before = 0  # ids given to words of earlier runs
        self._ids = {token: i for i, token in enumerate(SPECIAL_TOKENS)}
        self._counts: NDArray[np.int64] = np.zeros(1 << 16, dtype=np.int64)

    def encode(self, block: Block) -> NDArray[np.uint32]:
        """Count the words of a block and return their ids, (words,)."""
        known = self._ids
        numbers = (known.setdefault(word[:MAX_WORD_LENGTH], len(known)) for word in block.types)
        ids = np.fromiter(numbers, dtype=np.uint32, count=len(block.types))
        while len(known) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        np.add.at(self._counts, ids, block.counts())  # cropped words of a block may have become equal
        encoded = (ids + np.uint32(self._before))[block.ids]
        if len(known) > self._limit:
            self._spill()
        return encoded

    def ordered(self) -> SortedVocabulary:
        """Return all words in order; nothing can be encoded after that."""
        path, totals, ends = self._folder / "words.txt", array("q"), array("q", [0])
        rank_of: NDArray[np.uint32] = np.empty(self._before + len(self._ids), dtype=np.uint32)
        special = {}
        with path.open("wb") as file:
            merged = heapq.merge(*map(_read, self._runs), self._entries())
            for rank, (word, same) in enumerate(itertools.groupby(merged, key=itemgetter(0))):
                total = 0
                for _, number, count in same:
                    rank_of[number] = rank
                    total += count
                if word in SPECIAL_TOKENS:
                    special[word] = rank
                totals.append(total)
                ends.append(ends[-1] + file.write(f"{word}\n".encode()))
        counts = np.frombuffer(totals, dtype=np.int64)
        order = np.argsort(-counts, kind="stable")  # ties stay in the order of the words
        first = np.array([special[token] for token in SPECIAL_TOKENS])
        order = np.concatenate([first, order[~np.isin(order, first)]])
        final = np.empty(len(order), dtype=np.uint32)
        final[order] = np.arange(len(order), dtype=np.uint32)
        return SortedVocabulary(counts[order], final[rank_of], path, np.frombuffer(ends, dtype=np.int64), order)

    def _entries(self) -> Iterator[_Entry]:
        for word in sorted(self._ids):
            i = self._ids[word]
            yield word, self._before + i, int(self._counts[i])

    def _spill(self) -> None:
        path = self._folder / f"{len(self._runs)}.txt"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word} {number} {count}\n" for word, number, count in self._entries())
        self._runs.append(path)
        self._before += len(self._ids)
        self._ids = {}
        self._counts = np.zeros(1 << 16, dtype=np.int64)


def _read(path: Path) -> Iterator[_Entry]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            word, number, count = line.rsplit(" ", 2)
            yield word, int(number), int(count)


def build_vocabulary(
    corpus: Corpus, *, size: int | None = None, min_count: int = 1, progress: Advance | None = None
) -> tuple[Vocabulary, int]:
    """Return the special tokens, then words by falling count, ties in the order of the words; and the words of the text.

    `size` includes the special tokens; words that occur less than `min_count` times are left out.
    """
    special = len(SPECIAL_TOKENS)
    if size is not None and size <= special:
        tokens = ", ".join(SPECIAL_TOKENS)
        raise UsageError(f"{arg('size', size)} leaves no room for words: {tokens} are part of the vocabulary")
    if min_count < 1:
        raise UsageError(f"{arg('min_count', min_count)} is too small; allowed: 1 or more")
    with wrap_os_errors("temporary files", "write"), tempfile.TemporaryDirectory(prefix="polyseme-counts-") as folder:
        index = VocabularyIndex(Path(folder))
        for block in corpus.blocks(progress):
            index.encode(block)
        ordered = index.ordered()
        kept = special + int((ordered.counts[special:] >= min_count).sum())
        lines = list(itertools.islice(ordered.lines(), kept if size is None else min(kept, size)))
    total = int(ordered.counts.sum())
    if kept == special:
        what = f"no word occurs {min_count} times or more" if total else "the text has no words"
        raise PolysemeError(f"the vocabulary would be empty: {what}")
    return Vocabulary([line.decode().removesuffix("\n") for line in lines]), total
