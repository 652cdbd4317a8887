"""Texts as sparse features: hashed n-grams of words, and for pairs which n-grams the two texts share.

A unit is a lower-case word, a punctuation mark, or a single character in scripts without spaces (Han, kana, Thai, ...).
N-grams have one or two units, or up to three where most units are single characters. They are hashed to 32 bits, so that no
list of them is kept: features of new texts need only the hashes that a model knows.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNIT = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")
_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_BINS = 10
Text = str | Sequence[str]


@dataclass(frozen=True)
class SparseRows:
    """Rows of features: the features of row i are `ids[starts[i] : starts[i + 1]]`, each once."""

    starts: np.ndarray
    """(rows + 1,)."""
    ids: np.ndarray
    """(entries,): hashes."""
    counts: np.ndarray
    """(entries,): how often the row has the feature, or the weight of an overlap."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def rows(self) -> np.ndarray:
        """(entries,): the row of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def take(self, rows: np.ndarray) -> SparseRows:
        """Return some of the rows."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return SparseRows(starts, self.ids[entries], self.counts[entries])


def units(text: Text) -> list[str]:
    """Return the units of a text.

    >>> units("It's 好的!"), units(["Don't", "go"])
    (['it', "'", 's', '好', '的', '!'], ['don', "'", 't', 'go'])
    """
    return _UNIT.findall((text if isinstance(text, str) else " ".join(text)).lower())


def max_ngram(texts: Sequence[Text], sample: int = 1000) -> int:
    """Return the longest n-grams to use: 3 where most units are single characters of a script without spaces, else 2.

    >>> max_ngram(["not good at all"]), max_ngram(["很好"])
    (2, 3)
    """
    found = [unit for text in texts[:sample] for unit in units(text)]
    return 3 if 2 * sum(_CHARACTER.fullmatch(unit) is not None for unit in found) > len(found) else 2


class FeatureHasher:
    """Turns texts, or pairs of texts, into hashed features."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self._known: dict[str, int] = {}

    def texts(self, texts: Sequence[Text]) -> SparseRows:
        """Return the n-grams of each text with their counts."""
        return _joined([np.unique(self._ngrams(units(text)), return_counts=True) for text in texts])

    def pairs(self, pairs: Sequence[tuple[Text, Text]]) -> SparseRows:
        """Return the n-grams of each pair, marked as of the first text, the second or both, and bins of their overlap."""
        return _joined([self._pair(first, second) for first, second in pairs])

    def overlap(self, first: Text, second: Text) -> np.ndarray:
        """Return how much two texts overlap, in numbers from 0 to 1: shares of units and n-grams, and of lengths."""
        (a, ones_a), (b, ones_b) = self._distinct(first), self._distinct(second)
        return _overlap((ones_a, ones_b), (a, b))

    def _pair(self, first: Text, second: Text) -> tuple[np.ndarray, np.ndarray]:
        (a, ones_a), (b, ones_b) = self._distinct(first), self._distinct(second)
        both = np.isin(a, b, assume_unique=True)
        marked = [_marked(a[both], 1), _marked(a[~both], 2), _marked(b[~np.isin(b, a, assume_unique=True)], 3)]
        overlap = _overlap((ones_a, ones_b), (a, b))
        bins = np.minimum((overlap * _BINS).astype(np.int64), _BINS) + (_BINS + 1) * np.arange(len(overlap))
        ids = np.concatenate([*marked, _marked(bins.astype(np.uint64), 4)])
        ngrams = len(ids) - len(bins)
        weights = np.ones(len(ids), dtype=np.float32)
        weights[ngrams:] = max(1.0, ngrams / len(bins)) ** 0.5  # overlaps count as much as all n-grams together
        order = np.argsort(ids, kind="stable")
        return ids[order], weights[order]

    def _distinct(self, text: Text) -> tuple[np.ndarray, np.ndarray]:
        """The distinct n-grams of a text, and those of single units."""
        found = units(text)
        ngrams = self._ngrams(found)
        return np.unique(ngrams), np.unique(ngrams[: len(found)])

    def _ngrams(self, found: list[str]) -> np.ndarray:
        """The hashes of all n-grams of units, single units first."""
        for unit in found:
            if unit not in self._known:
                self._known[unit] = zlib.crc32(unit.encode("utf-8", "surrogatepass"))
        single = np.fromiter((self._known[unit] for unit in found), dtype=np.uint64, count=len(found))
        parts, last = [single], single
        for length in range(2, self.longest + 1):
            last = last[:-1] * np.uint64(0x9E3779B1) + single[length - 1 :] * np.uint64(2 * length + 1)
            parts.append(last)
        return _mixed(np.concatenate(parts))


def _overlap(ones: tuple[np.ndarray, np.ndarray], ngrams: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """How much two texts overlap, in numbers from 0 to 1: shares of units and n-grams, of either text, and of lengths."""
    found = []
    for left, right in (ones, ngrams):
        shared = len(np.intersect1d(left, right, assume_unique=True))
        found += [shared / max(len(left), 1), shared / max(len(right), 1), 2 * shared / max(len(left) + len(right), 1)]
    sizes = [len(each) for each in ngrams]
    return np.array([*found, min(sizes) / max(*sizes, 1), sizes[0] < sizes[1]], dtype=np.float32)


def _marked(ids: np.ndarray, mark: int) -> np.ndarray:
    return _mixed(ids.astype(np.uint64) + np.uint64(mark << 40))


def _mixed(values: np.ndarray) -> np.ndarray:
    """Hash numbers to 32 bits."""
    values = (values ^ (values >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((values ^ (values >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _joined(rows: Sequence[tuple[np.ndarray, np.ndarray]]) -> SparseRows:
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids, _ in rows])]).astype(np.int64)
    ids = np.concatenate([ids for ids, _ in rows]) if rows else np.zeros(0, dtype=np.int64)
    counts = np.concatenate([counts for _, counts in rows]).astype(np.float32) if rows else np.zeros(0, dtype=np.float32)
    return SparseRows(starts, ids, counts)
