"""A report on a corpus before anything is trained on it: what it holds and what is wrong with it.

One pass in bounded memory, spread over the workers like any other; only the hashes of lines and words are merged.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polyseme.base.errors import arg
from polyseme.base.progress import Advance
from polyseme.text.counting.distinct_count import DistinctCount, Hashes, hashes_of
from polyseme.text.files.decompression import ENCODING_ADVICE
from polyseme.text.files.reader import ChunkMap
from polyseme.text.files.sources import Source
from polyseme.text.shards.blocks import TextSplitter
from polyseme.text.traditional import MIN_LINES, is_traditional

MODEL_BYTES = 48
"""Bytes of a word that a character model sees: rows of 50 with two special characters."""

_SMALL = 1_000_000
_LONG_SENTENCE = 1000
_SHOWN = 3
_TO_NFC = (
    'python -X utf8 -c "import sys, unicodedata; '
    "sys.stdout.writelines(unicodedata.normalize('NFC', line) for line in sys.stdin)\" < OLD > NEW"
)
"""A command that converts text to NFC."""


@dataclass(frozen=True, kw_only=True)
class CorpusReport:
    """The result of `Corpus.check`."""

    files: int
    bytes: int
    """On disk."""
    lines: int
    sentences: int
    words: int
    distinct_words: int
    unicode_variants: int
    """Distinct words that equal another one except for their code points: composed and decomposed accents."""
    longest_sentence: int
    """In words."""
    long_words: int
    """Occurrences of words of more than 48 bytes, of which a model sees the first 48."""
    long_word_examples: tuple[str, ...]
    empty_files: tuple[str, ...]
    """Files without any text."""
    bad_lines: int
    """Lines that are not UTF-8, or have no text in the field."""
    duplicate_lines: int
    """Lines that equal an earlier one, without blank lines."""
    exact: bool
    """Whether duplicates and distinct words are counted and not estimated."""
    encoded_bytes: int
    """Estimated size of the encoded corpus on disk."""
    traditional_lines: int = 0
    """Lines of Chinese in traditional characters."""

    @property
    def usable(self) -> bool:
        """Whether training can read all of it and learn from it."""
        return self.words > 0 and self.bad_lines == 0

    def problems(self, source: str = "SOURCE") -> list[str]:
        """Return what to know before training, as sentences; `source`: the text, as it stands in a command."""
        return list(self._problems(source))

    def _problems(self, source: str) -> Iterator[str]:
        if self.bad_lines:
            yield self._bad()
        if not self.words:
            yield "The files have no words: nothing can be learned from them."
            return
        if self.empty_files:
            yield f"{_count(len(self.empty_files), 'file has', 'files have')} no text: {_some(self.empty_files)}."
        if self.words < _SMALL:
            yield f"{self.words:,} words are few: a useful model needs {_SMALL:,} or more, a good one 100 times that."
        if 20 * self.duplicate_lines > self.lines:
            percent = 100 * self.duplicate_lines / self.lines
            start = ("" if self.exact else "About ") + _count(self.duplicate_lines, "line", "lines")
            dedupe = f"`polyseme corpus dedupe {source} --out deduplicated --threshold 1` does so"
            how = "a line is a document, and case and punctuation do not count"
            advice = f"Remove them: {dedupe} ({how}); without --threshold 1 it drops near-duplicates too."
            yield f"{start} ({percent:.0f} %) repeat an earlier one: a model memorises those. {advice}"
        share = self.traditional_lines / max(self.lines, 1)
        if MIN_LINES <= share <= 1 - MIN_LINES:
            start = f"{_count(self.traditional_lines, 'line has', 'lines have')} traditional characters ({100 * share:.0f} %)"
            what = "others have simplified ones: a model learns different words"
            yield f"{start}, {what}. Convert the text to one kind first, for example with OpenCC."
        if self.unicode_variants:
            start = ("" if self.exact else "About ") + _count(self.unicode_variants, "word has", "words have")
            what = "another form in other code points (composed and decomposed accents), which counts as a different word"
            yield f"{start} {what}: convert the text to NFC first ({_TO_NFC}, or uconv -x nfc)."
        if self.long_words:
            examples = _some([word[:20] + "…" for word in self.long_word_examples])
            long = _count(self.long_words, "word is", "words are")
            yield f"{long} longer than {MODEL_BYTES} bytes, and models crop them: {examples}."
        if self.longest_sentence > _LONG_SENTENCE:
            yield f"The longest sentence has {self.longest_sentence:,} words: check the splitting ({arg('sentences')})."

    def _bad(self) -> str:
        """Return what to do with bad lines: a few may be skipped; many mean that the text is not what it seems."""
        bad = f"{_count(self.bad_lines, 'line is', 'lines are')} bad (not UTF-8, or without text in the field)"
        if 20 * self.bad_lines <= self.lines:
            return f"{bad}: fix the text, or skip bad lines."
        many = f"{100 * self.bad_lines / self.lines:.0f} % of all, which is too many to skip"
        return f"{bad}, {many}: if the text has another encoding, {ENCODING_ADVICE}; if it is JSON, give {arg('field')}."


class _ChunkCounts(NamedTuple):
    """What a worker finds in one chunk."""

    sums: dict[str, int]
    """Numbers that add up over chunks."""
    longest: int
    """Words of the longest sentence."""
    examples: list[str]
    """Some long words."""
    hashes: dict[str, Hashes]
    """Of lines, words, `spellings` (words that have other forms in Unicode, as written) and the same words in NFC."""


@dataclass(frozen=True, slots=True)
class _CountChunk:
    """What a worker does; a class, so that it can be pickled."""

    splitter: TextSplitter

    def __call__(self, text: str) -> _ChunkCounts:
        block = self.splitter.block_of(text)
        sizes = [len(word.encode("utf-8", "surrogatepass")) for word in block.types]
        spellings = [word for word in block.types if _has_spellings(word)]
        long = np.array(sizes, dtype=np.int64) > MODEL_BYTES
        sums = {
            "sentences": len(block.lengths),
            "words": len(block.ids),
            "long_words": int(block.counts()[long].sum()),
            "types": len(sizes),
            "type_bytes": sum(sizes),
            "traditional": 0 if text.isascii() else sum(map(is_traditional, text.split("\n"))),
        }
        hashes = {
            "lines": hashes_of(line for line in map(str.strip, text.split("\n")) if line),
            "words": hashes_of(block.types),
            "spellings": hashes_of(spellings),
            "nfc": hashes_of(unicodedata.normalize("NFC", word) for word in spellings),
        }
        examples = [block.types[i] for i in np.flatnonzero(long)[:_SHOWN]]
        return _ChunkCounts(sums, int(block.lengths.max(initial=0)), examples, hashes)


def check_corpus(source: Source, splitter: TextSplitter, chunk_map: ChunkMap, progress: Advance | None = None) -> CorpusReport:
    """Read the source once; bad lines are counted, whatever its `errors`. `chunk_map` does the work of all chunks."""
    sums: Counter[str] = Counter()
    seen: dict[str, DistinctCount] = defaultdict(DistinctCount)
    longest, examples, with_text = 0, dict[str, None](), set[int]()
    for chunk, part in chunk_map(_CountChunk(splitter), source.tolerant()):
        sums.update(part.sums, lines=chunk.lines, bad=chunk.bad)
        longest = max(longest, part.longest)
        examples |= dict.fromkeys(part.examples)
        if chunk.text and not chunk.text.isspace():
            with_text.add(chunk.file)
        for name, hashes in part.hashes.items():
            seen[name].add(hashes)
        if progress is not None:
            progress(part.sums["words"])
    distinct = seen["words"].distinct
    letters = sums["type_bytes"] / max(sums["types"], 1) + 1
    return CorpusReport(
        files=len(source.files),
        bytes=source.size(),
        lines=sums["lines"],
        sentences=sums["sentences"],
        words=sums["words"],
        distinct_words=distinct,
        unicode_variants=max(seen["spellings"].distinct - seen["nfc"].distinct, 0),
        longest_sentence=longest,
        long_words=sums["long_words"],
        long_word_examples=tuple(examples)[:_SHOWN],
        empty_files=tuple(file.name for number, file in enumerate(source.files) if number not in with_text),
        bad_lines=sums["bad"],
        traditional_lines=sums["traditional"],
        duplicate_lines=seen["lines"].repeats,
        exact=seen["lines"].exact and seen["words"].exact,
        # 4 bytes per word, 8 per sentence, 8 and its letters per distinct word
        encoded_bytes=4 * sums["words"] + 8 * (sums["sentences"] + 1) + int((8 + letters) * distinct),
    )


def _has_spellings(word: str) -> bool:
    """Whether the same word can be written in other code points (`é`, or `e` and an accent)."""
    return not (word.isascii() or (unicodedata.is_normalized("NFC", word) and unicodedata.is_normalized("NFD", word)))


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _some(names: tuple[str, ...] | list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
