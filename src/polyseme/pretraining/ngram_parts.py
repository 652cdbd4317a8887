"""Count the n-grams of a text of any size on an engine: slice by slice of the text, through files.

1. *slices*: the n-grams of some sentences, sorted by their words, with their counts (`count_ngrams`);
2. *ranges*: the n-grams of all slices whose first two words fall into one range are merged;
3. the ranges one after another are the n-grams of the text, in arrays on disk.

The result is that of `count_ngrams` for the whole text. The memory of a worker depends on the size of slices and ranges, not
on the text. A slice that is counted is not counted again when the same call resumes. Files of a slice take 4 (n + 1) bytes for
each distinct n-gram of the slice; they are removed at the end.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.base.array_file import save_array
from polyseme.base.files import atomic
from polyseme.base.hashing import hash_json
from polyseme.base.progress import progress
from polyseme.pretraining.ngram_counts import BEGIN, IntArray, NgramCounts, count_ngrams, to_stream
from polyseme.text.files.reader import TextEngine
from polyseme.text.shards.shards import Shards

SLICE_WORDS = 1 << 22
"""Words of a slice: a worker needs about 70 bytes for each."""
RANGE_ROWS = 1 << 23
"""N-grams of all slices and orders that are merged at a time."""
_SAMPLES = 1 << 10  # n-grams of a slice that help to choose the ranges


@contextlib.contextmanager
def ngram_parts(
    shards: Shards, ids: NDArray[np.int32], size: int, order: int, folder: Path, engine: TextEngine
) -> Iterator[Iterator[NgramCounts]]:
    """Give the n-grams of order 1, 2, ... of a text; their arrays are files below `folder`, until the block ends."""
    digest = hashlib.sha256(ids.tobytes()).hexdigest()
    key = hash_json([shards.fingerprint, digest, size, order, SLICE_WORDS, RANGE_ROWS])
    work = folder / f"ngrams-{key[:16]}"
    work.mkdir(parents=True, exist_ok=True)
    save_array(work / "ids.npy", ids)
    yield _count(shards, size, order, work, engine)
    shutil.rmtree(work)


def _count(shards: Shards, size: int, order: int, work: Path, engine: TextEngine) -> Iterator[NgramCounts]:
    slices = _slices(shards)
    samples, rows = [], 0
    counts = np.zeros(size, dtype=np.int64)
    with progress("counting n-grams", len(slices), "slices") as advance:
        for found in engine.map(CountSlice(str(shards.folder), str(work), size, order), slices):
            counts += found["counts"]
            samples.append(found["sample"])
            rows += int(found["rows"])
            advance(1)
    bounds = _bounds(np.concatenate(samples), -(-rows // RANGE_ROWS))
    ranges = list(zip(range(len(bounds) + 1), [None, *bounds], [*bounds, None], strict=True))
    with progress("merging n-grams", len(ranges), "ranges") as advance:
        merge = MergeRange(str(work), size, order, len(slices))
        lengths = []
        for found in engine.map(merge, ranges):
            lengths.append(found)
            advance(1)
    tokens = shards.total + 2 * len(shards)
    number: type[np.signedinteger] = np.int32 if tokens < np.iinfo(np.int32).max else np.int64
    words: IntArray = np.arange(size, dtype=number)
    below = NgramCounts(np.zeros_like(words), words, np.zeros_like(words), words == BEGIN, counts)
    yield below
    for length in range(2, order + 1):
        below = _join(work, size, length, np.array(lengths, dtype=np.int64).reshape(len(ranges), -1), below, number)
        yield below


def _slices(shards: Shards) -> list[tuple[int, int, int]]:
    """Return number, first and last sentence of each slice."""
    places = np.arange(0, shards.total + SLICE_WORDS, SLICE_WORDS)
    edges = np.unique(np.append(np.searchsorted(shards.offsets, places), [0, len(shards)]))
    edges = edges[edges <= len(shards)]
    return [(number, int(a), int(b)) for number, (a, b) in enumerate(itertools.pairwise(edges))]


def _bounds(sample: NDArray[np.int64], ranges: int) -> list[int]:
    """Return where ranges of about equal size begin, but for the first."""
    if ranges < 2 or not len(sample):
        return []
    places = (np.arange(1, ranges) * len(sample)) // ranges
    return [int(each) for each in np.unique(np.sort(sample)[places])]


@dataclass(frozen=True)
class CountSlice:
    """Work that writes the n-grams of a slice."""

    shards: str
    work: str
    size: int
    order: int

    def __call__(self, task: tuple[int, int, int]) -> dict[str, Any]:
        number, first, last = task
        done = Path(self.work, f"slice-{number}.npz")
        if not done.is_file():
            self._write(number, first, last, done)
        with np.load(done) as values:
            return dict(values)

    def _write(self, number: int, first: int, last: int, done: Path) -> None:
        shards = Shards.open(self.shards)
        offsets = shards.offsets[first : last + 1]
        words = shards.words[offsets[0] : offsets[-1]]
        part = Shards(words, offsets - offsets[0], shards.counts, fingerprint="", types=[])
        stream = to_stream(part, np.load(Path(self.work, "ids.npy"), mmap_mode="r"))
        counted = count_ngrams(stream, self.size, self.order)
        counts = next(counted).count
        grams: NDArray[np.uint32] = np.arange(self.size, dtype=np.uint32)[:, None]
        total = 0
        for length, found in enumerate(counted, start=2):
            grams = np.concatenate([grams[found.context], found.word[:, None].astype(np.uint32)], axis=1)
            save_array(Path(self.work, f"slice-{number}-{length}-words.npy"), grams)
            save_array(Path(self.work, f"slice-{number}-{length}-counts.npy"), found.count.astype(np.uint32))
            total += len(grams)
        sample = grams[:: max(len(grams) // _SAMPLES, 1)]
        keys = sample[:, 0].astype(np.int64) * self.size + sample[:, min(1, self.order - 1)]
        with atomic(done) as path, path.open("wb") as file:
            np.savez(file, counts=counts, sample=keys, rows=total)


@dataclass(frozen=True)
class MergeRange:
    """Work that merges the n-grams of all slices whose first two words, as one number, are in a range."""

    work: str
    size: int
    order: int
    slices: int

    def __call__(self, task: tuple[int, int | None, int | None]) -> list[int]:
        number, low, high = task
        keys: list[NDArray[np.int64]] = []  # of each order: context and word as one number, sorted
        lengths = []
        for length in range(2, self.order + 1):
            grams, counts = self._rows(length, low, high)
            context = grams[:, 0].astype(np.int64)
            for column, known in enumerate(keys, start=1):
                context = np.searchsorted(known, context * self.size + grams[:, column])
            merged, counts = _sum_equal(context * self.size + grams[:, length - 1], counts)
            save_array(Path(self.work, f"range-{number}-{length}-keys.npy"), merged)
            save_array(Path(self.work, f"range-{number}-{length}-counts.npy"), counts)
            keys.append(merged)
            lengths.append(len(merged))
        return lengths

    def _rows(self, length: int, low: int | None, high: int | None) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the n-grams of a range in all slices, (n, length), and their counts."""
        grams, counts = [np.zeros((0, length), dtype=np.uint32)], [np.zeros(0, dtype=np.int64)]
        for number in range(self.slices):
            rows = np.load(Path(self.work, f"slice-{number}-{length}-words.npy"), mmap_mode="r")

            def key(row: int, rows: NDArray[np.uint32] = rows) -> int:
                return int(rows[row, 0]) * self.size + int(rows[row, 1])

            begin = 0 if low is None else bisect_left(range(len(rows)), low, key=key)
            end = len(rows) if high is None else bisect_left(range(len(rows)), high, key=key)
            grams.append(np.array(rows[begin:end]))
            some = np.load(Path(self.work, f"slice-{number}-{length}-counts.npy"), mmap_mode="r")[begin:end]
            counts.append(some.astype(np.int64))
        return np.concatenate(grams), np.concatenate(counts)


def _sum_equal(keys: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct keys, sorted, and the sum of the counts of each."""
    if not len(keys):
        return keys, counts
    by_key = np.argsort(keys, kind="stable")
    keys, counts = keys[by_key], counts[by_key]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return keys[first], np.add.reduceat(counts, first)


def _join(
    work: Path, size: int, length: int, lengths: NDArray[np.int64], below: NgramCounts, number: type[np.signedinteger]
) -> NgramCounts:
    """Write the n-grams of one order, of all ranges; `lengths`: of each range, n-grams by order."""
    total = int(lengths[:, length - 2].sum())
    kinds: dict[str, Any] = {"context": number, "word": number, "shorter": number, "begins": bool, "count": number}
    arrays = {name: _array(work / f"{length}-{name}.npy", kind, total) for name, kind in kinds.items()}
    below_keys = _array(work / f"{length}-below.npy", np.int64, len(below))
    below_keys[:] = below.context.astype(np.int64) * size + below.word
    begin = first = 0
    for part, sizes in enumerate(lengths):
        keys = np.load(work / f"range-{part}-{length}-keys.npy")
        context, word = np.divmod(keys, size)
        context += first
        end = begin + len(keys)
        arrays["context"][begin:end], arrays["word"][begin:end] = context, word
        arrays["begins"][begin:end] = below.begins[context]
        shorter = below.shorter[context].astype(np.int64) * size + word
        arrays["shorter"][begin:end] = word if length == 2 else np.searchsorted(below_keys, shorter)
        arrays["count"][begin:end] = np.load(work / f"range-{part}-{length}-counts.npy")
        begin = end
        first += int(sizes[length - 3]) if length > 2 else 0
    return NgramCounts(**arrays)


def _array(path: Path, kind: Any, length: int) -> NDArray[Any]:
    """Return a new array on disk; an empty one is in memory."""
    if not length:
        return np.zeros(0, dtype=kind)
    made: NDArray[Any] = np.lib.format.open_memmap(path, mode="w+", dtype=kind, shape=(length,))
    return made
