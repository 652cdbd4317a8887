"""How often every word of a corpus comes, exactly and in bounded memory, and the vocabulary made of it.

Counts are kept in a dictionary; when it holds more than a limit of words it is written to a temporary folder, sorted by
word, and emptied, and at the end all such runs are merged. Chosen against a sketch (which is never exact) and against
dropping rare words on the way (which depends on the order of the text). No word is ever hashed to decide an order.
"""

from __future__ import annotations

import heapq
import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.files import wrap_os_errors
from polyseme.base.progress import Advance
from polyseme.text.corpus import Corpus
from polyseme.text.vocabulary import Vocabulary

SPECIAL_TOKENS = ("<S>", "</S>", "<UNK>")
"""Begin and end of a sentence, and the unknown word: the first three of every vocabulary."""

MAX_WORD_LENGTH = 1000
"""Characters of a word that are kept: more is rubbish, and one line of it could be the whole file."""

Counted = tuple[str, int]


class WordCounts:
    """Words and how often they came; iterates over pairs in the order of the words.

    >>> counts = WordCounts(); counts.add(["b", "a"], [1, 2]); counts.add(["b"], [3])
    >>> list(counts), counts.total, counts.most_common(1)
    ([('a', 2), ('b', 4)], 6, [('b', 4)])
    """

    def __init__(self, limit: int = 2_000_000) -> None:
        self.limit = limit
        """Words held in memory (2 million take about 250 MB)."""
        self.total = 0
        """Words in all, each as often as it came."""
        self._counts: dict[str, int] = {}
        self._runs: list[Path] = []
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def add(self, words: Iterable[str], counts: Iterable[int]) -> None:
        """Take some more words, each with its count."""
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
        """The most frequent words, ties in the order of the words; all of them when no size is given."""
        return sorted(self, key=_rank) if size is None else heapq.nsmallest(size, self, key=_rank)

    def _spill(self) -> None:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="polyseme-counts-")  # goes when the counts go
        path = Path(self._folder.name) / f"{len(self._runs)}.txt"
        with wrap_os_errors(path, "write"), path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{word} {count}\n" for word, count in sorted(self._counts.items()))
        self._runs.append(path)
        self._counts.clear()


def count_words(corpus: Corpus, *, limit: int = 2_000_000, progress: Advance | None = None) -> WordCounts:
    """Count the words of a corpus; `limit` is how many distinct ones memory may hold."""
    counts = WordCounts(limit)
    for block in corpus.blocks(progress):
        counts.add(block.types, block.counts().tolist())
    return counts


def build_vocabulary(counts: WordCounts, *, size: int | None = None, min_count: int = 1) -> Vocabulary:
    """The marks, then words by falling count, ties in the order of the words.

    `size` is that of the whole vocabulary, marks included; `min_count` leaves out words that came less often.
    """
    if size is not None and size <= len(SPECIAL_TOKENS):
        raise UsageError(f"a vocabulary of {size} has no room for a word: the marks {', '.join(SPECIAL_TOKENS)} are part of it")
    if min_count < 1:
        raise UsageError(f"the least count is {min_count}; allowed: 1 or more")
    # The marks could come as words of a text that was split already, so three more are asked for.
    common = counts.most_common(size)
    words = [word for word, count in common if count >= min_count and word not in SPECIAL_TOKENS]
    if not words:
        what = f"no word comes {min_count} times or more" if counts.total else "there are no words to count"
        raise PolysemeError(f"the vocabulary would be empty: {what}")
    return Vocabulary([*SPECIAL_TOKENS, *words][:size])


def _rank(pair: Counted) -> tuple[int, str]:
    return -pair[1], pair[0]


def _read(path: Path) -> Iterator[Counted]:
    with wrap_os_errors(path, "read"), path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            word, _, count = line.rpartition(" ")
            yield word, int(count)
