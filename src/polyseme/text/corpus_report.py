"""What there is in a corpus and what is wrong with it, before anything is trained on it.

One pass in bounded memory, split over the workers like any other; only the hashes of lines and words come together.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.base.progress import Advance
from polyseme.text.counting.distinct_count import DistinctCount, Hashes, hashes_of
from polyseme.text.files.decompression import ENCODING_ADVICE
from polyseme.text.files.parallel_map import parallel_map
from polyseme.text.files.reader import Chunk, chunk_text
from polyseme.text.files.sources import Source
from polyseme.text.shards.blocks import TextSplitter

MODEL_BYTES = 48
"""Bytes of a word that a character model sees: rows of 50 with two marks."""

_SMALL = 1_000_000
_LONG_SENTENCE = 1000
_SHOWN = 3
_TO_NFC = (
    'python -X utf8 -c "import sys, unicodedata; '
    "sys.stdout.writelines(unicodedata.normalize('NFC', line) for line in sys.stdin)\" < OLD > NEW"
)
"""A command that writes every accent the same way."""


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """What `Corpus.check` found."""

    files: int
    bytes: int
    """On disk, packed as the files are."""
    lines: int
    sentences: int
    words: int
    distinct_words: int
    twice_spelt: int
    """Of those, words that are another one in other code points: an accent as a mark of its own, or as part of its letter."""
    longest_sentence: int
    """In words."""
    long_words: int
    """Words of more than 48 bytes, of which a model sees the first 48; counted as often as they come."""
    long_word_examples: tuple[str, ...]
    empty_files: tuple[str, ...]
    """Files without any text."""
    bad_lines: int
    """Lines that are not UTF-8, or hold no text in the field."""
    duplicate_lines: int
    """Lines that are equal to one before them, blank ones aside."""
    exact: bool
    """Whether the counts of duplicates and of distinct words are no estimates."""
    shard_bytes: int
    """About what the corpus takes on disk when it is encoded."""

    @property
    def usable(self) -> bool:
        """Whether training could read it from end to end and would learn from it."""
        return self.words > 0 and self.bad_lines == 0

    def problems(self) -> list[str]:
        """What to know before training, in plain sentences; none is a good sign."""
        return list(self._problems())

    def _problems(self) -> Iterator[str]:
        if self.bad_lines:
            yield self._bad()
        if not self.words:
            yield "There are no words in all these files: nothing can be learned from them."
            return
        if self.empty_files:
            yield f"{_count(len(self.empty_files), 'file holds', 'files hold')} no text: {_some(self.empty_files)}."
        if self.words < _SMALL:
            yield f"{self.words:,} words in all is little: a useful model wants {_SMALL:,} or more, a good one 100 times that."
        if 20 * self.duplicate_lines > self.lines:
            share = 100 * self.duplicate_lines / self.lines
            start = ("" if self.exact else "About ") + _count(self.duplicate_lines, "line", "lines")
            yield f"{start} ({share:.0f} %) equal to an earlier one: a model learns those by heart."
        if self.twice_spelt:
            start = ("" if self.exact else "About ") + _count(self.twice_spelt, "word is another one", "words are others")
            what = "in other code points (an accent as a mark of its own, or as part of its letter) and counted as two"
            yield f"{start} {what}: write all text in NFC first ({_TO_NFC}, or uconv -x nfc)."
        if self.long_words:
            examples = _some([word[:20] + "…" for word in self.long_word_examples])
            long = _count(self.long_words, "word is", "words are")
            yield f"{long} longer than {MODEL_BYTES} bytes and will be cropped by the model: {examples}."
        if self.longest_sentence > _LONG_SENTENCE:
            yield f"The longest sentence has {self.longest_sentence:,} words: are its sentences split the right way?"

    def _bad(self) -> str:
        """What to do with bad lines: few may be skipped, but where they are many the text is not what it was taken for."""
        bad = f"{_count(self.bad_lines, 'line is', 'lines are')} bad (not UTF-8, or without text in the field)"
        if 20 * self.bad_lines <= self.lines:
            return f"{bad}: mend the text, or skip bad lines."
        many = f"{100 * self.bad_lines / self.lines:.0f} % of all and too many to skip"
        return f"{bad}, {many}: if the text is in another encoding, {ENCODING_ADVICE}; if it is JSON, name the field."


class _Part(NamedTuple):
    """What a worker finds in a chunk."""

    blank: bool
    sentences: int
    words: int
    longest: int
    long_words: int
    examples: list[str]
    lines: Hashes
    types: Hashes
    spellings: Hashes
    """Of words that could be written in other code points, as they are written."""
    spelt_alike: Hashes
    """Of the same words in NFC."""
    type_bytes: int


@dataclass(frozen=True, slots=True)
class _Examine:
    """The work of a worker; a class, so that it can be sent to one."""

    cutter: TextSplitter

    def __call__(self, text: str) -> _Part:
        block = self.cutter.block_of(text)
        sizes = [len(word.encode("utf-8", "surrogatepass")) for word in block.types]
        spellings = [word for word in block.types if _has_spellings(word)]
        long = np.array(sizes, dtype=np.int64) > MODEL_BYTES
        return _Part(
            blank=not text or text.isspace(),
            sentences=len(block.lengths),
            words=len(block.ids),
            longest=int(block.lengths.max(initial=0)),
            long_words=int(block.counts()[long].sum()),
            examples=[block.types[place] for place in np.flatnonzero(long)[:_SHOWN]],
            lines=hashes_of(line for line in map(str.strip, text.split("\n")) if line),
            types=hashes_of(block.types),
            spellings=hashes_of(spellings),
            spelt_alike=hashes_of(unicodedata.normalize("NFC", word) for word in spellings),
            type_bytes=sum(sizes),
        )


class _Sums:
    """The parts of all workers, put together."""

    def __init__(self) -> None:
        self.lines = self.bad = self.sentences = self.words = self.longest = self.long_words = 0
        self.types_seen = self.type_bytes = 0
        self.examples: list[str] = []
        self.with_text: set[int] = set()
        self.line_hashes, self.word_hashes = DistinctCount(), DistinctCount()
        self.spellings, self.spelt_alike = DistinctCount(), DistinctCount()

    def add(self, chunk: Chunk, part: _Part) -> None:
        self.lines += chunk.lines
        self.bad += chunk.bad
        self.sentences += part.sentences
        self.words += part.words
        self.longest = max(self.longest, part.longest)
        self.long_words += part.long_words
        self.examples += [word for word in part.examples if word not in self.examples][: _SHOWN - len(self.examples)]
        self.types_seen += len(part.types)
        self.type_bytes += part.type_bytes
        if not part.blank:
            self.with_text.add(chunk.file)
        self.line_hashes.add(part.lines)
        self.word_hashes.add(part.types)
        self.spellings.add(part.spellings)
        self.spelt_alike.add(part.spelt_alike)

    def shard_bytes(self) -> int:
        """Four bytes a word, eight a sentence, and for each distinct word eight and its letters."""
        letters = self.type_bytes / max(self.types_seen, 1) + 1
        return 4 * self.words + 8 * (self.sentences + 1) + int((8 + letters) * self.word_hashes.distinct)


def check_corpus(source: Source, cutter: TextSplitter, workers: int, progress: Advance | None = None) -> CorpusReport:
    """Read the whole source once; bad lines are counted even where reading it would stop at them."""
    tolerant = source.tolerant()
    sums = _Sums()
    for chunk, part in parallel_map(_Examine(cutter), tolerant.chunks(), chunk_text, workers):
        sums.add(chunk, part)
        if progress is not None:
            progress(part.words)
    return CorpusReport(
        files=len(source.files),
        bytes=source.size(),
        lines=sums.lines,
        sentences=sums.sentences,
        words=sums.words,
        distinct_words=sums.word_hashes.distinct,
        twice_spelt=max(sums.spellings.distinct - sums.spelt_alike.distinct, 0),
        longest_sentence=sums.longest,
        long_words=sums.long_words,
        long_word_examples=tuple(sums.examples),
        empty_files=tuple(file.name for place, file in enumerate(source.files) if place not in sums.with_text),
        bad_lines=sums.bad,
        duplicate_lines=sums.line_hashes.repeats,
        exact=sums.line_hashes.exact and sums.word_hashes.exact,
        shard_bytes=sums.shard_bytes(),
    )


def _has_spellings(word: str) -> bool:
    """Whether there are other code points for the same word (`é` or `e` and a mark)."""
    return not (word.isascii() or (unicodedata.is_normalized("NFC", word) and unicodedata.is_normalized("NFD", word)))


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
