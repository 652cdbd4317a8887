"""Exact word counts of a corpus in bounded memory, and the vocabulary made of them.

Counts are kept in a dictionary. When it holds more than a limit of words it is written to a temporary folder, sorted by word,
and emptied; at the end all such runs are merged. Chosen against a sketch (which is never exact) and against dropping rare
words on the way (which depends on the order of the text). No order depends on a hash.
"""

from __future__ import annotations

import heapq
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.files import wrap_os_errors
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.vocabulary import Vocabulary

SPECIAL_TOKENS = ("<S>", "</S>", "<UNK>")
"""Begin and end of a sentence, and the unknown word: the first three words of every vocabulary."""

MAX_WORD_LENGTH = 1000
"""Longer words are cropped: they are noise, and a file without spaces could be one word."""

Counted = tuple[str, int]


class WordCounts:
    """Words and their counts; iterates over pairs in the order of the words.

    >>> counts = WordCounts(); counts.add(["b", "a"], [1, 2]); counts.add(["b"], [3])
    >>> list(counts), counts.total, counts.most_common(1)
    ([('a', 2), ('b', 4)], 6, [('b', 4)])
    """

    def __init__(self, limit: int = 2_000_000) -> None:
        self.limit = limit
        """Distinct words in memory (2 million take about 250 MB)."""
        self.total = 0
        """Sum of all counts."""
        self._counts: dict[str, int] = {}
        self._runs: list[Path] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def add(self, words: Iterable[str], counts: Iterable[int]) -> None:
        """Add words with their counts."""
        held = self._counts
        for word, count in zip(words, counts, strict=True):
            word = word[:MAX_WORD_LENGTH]
            held[word] = held.get(word, 0) + count
            self.total += count
        if len(held) > self.limit:
            self._spill()

    def __iter__(self) -> Iterator[Counted]:
        runs = [_read(run) for run in self._runs]
        merged = heapq.merge(*runs, sorted(self._counts.items()))
        for word, same in itertools.groupby(merged, key=lambda pair: pair[0]):
            yield word, sum(count for _, count in same)

    def most_common(self, size: int | None = None) -> list[Counted]:
        """Return the most frequent words, ties in the order of the words; all of them without a size."""
        return sorted(self, key=_rank) if size is None else heapq.nsmallest(size, self, key=_rank)

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="polyseme-counts-")  # removed with the counts
        path = Path(self._folder.name) / f"{len(self._runs)}.txt"
        with wrap_os_errors(path, "write"), path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word} {count}\n" for word, count in sorted(self._counts.items()))
        self._runs.append(path)
        self._counts.clear()


def count_words(corpus: Corpus, *, limit: int = 2_000_000, progress: Advance | None = None) -> WordCounts:
    """Count the words of a corpus; memory holds at most `limit` distinct ones."""
    counts = WordCounts(limit)
    for block in corpus.blocks(progress):
        counts.add(block.types, block.counts().tolist())
    return counts


def build_vocabulary(counts: WordCounts, *, size: int | None = None, min_count: int = 1) -> Vocabulary:
    """Return the special tokens, then words by falling count, ties in the order of the words.

    `size` includes the special tokens; words that occur less than `min_count` times are left out.
    """
    if size is not None and size <= len(SPECIAL_TOKENS):
        raise UsageError(
            f"{arg('size', size)} leaves no room for words: {', '.join(SPECIAL_TOKENS)} are part of the vocabulary"
        )
    if min_count < 1:
        raise UsageError(f"{arg('min_count', min_count)} is too small; allowed: 1 or more")
    # Special tokens could occur in a text that is split already, so up to three more are needed.
    common = counts.most_common(size)
    words = [word for word, count in common if count >= min_count and word not in SPECIAL_TOKENS]
    if not words:
        what = f"no word occurs {min_count} times or more" if counts.total else "the text has no words"
        raise PolysemeError(f"the vocabulary would be empty: {what}")
    return Vocabulary([*SPECIAL_TOKENS, *words][:size])


def _rank(pair: Counted) -> tuple[int, str]:
    return -pair[1], pair[0]


def _read(path: Path) -> Iterator[Counted]:
    with wrap_os_errors(path, "read"), path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            word, _, count = line.rpartition(" ")
            yield word, int(count)
