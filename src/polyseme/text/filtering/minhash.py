"""MinHash signatures: how similar two documents are, from a few numbers of each (Broder 1997).

A document is the set of its runs of three words, in lower case and without punctuation; each character of Chinese, Japanese and
Korean is a word. The share of equal numbers in two signatures estimates the Jaccard similarity of two sets. To find similar
documents without comparing all, a signature is cut into 64 bands of 4 numbers: documents of similarity s share a band with
probability 1 - (1 - s^4)^64, which is 0.98 for s = 0.5 and 0.00001 for s = 0.02. Written here with NumPy: datasketch
computes the same, one document at a time in Python objects, and keeps its index in memory.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from polyseme.text.filtering.plain_words import plain_words

HASHES, BAND = 256, 4
BANDS = HASHES // BAND
SHINGLE = 3

Signature = NDArray[np.uint32]

_draw = np.random.default_rng(0x9E3779B9)
_FACTORS = _draw.integers(0, 1 << 63, size=(HASHES, 1), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_SHIFTS = _draw.integers(0, 1 << 63, size=(HASHES, 1), dtype=np.uint64)
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_BLOCK = 4096  # shingles at a time: 8 MB


def signature(text: str) -> Signature:
    """Return the signature of a document, (HASHES,); a text without words has one like no other of that kind.

    >>> a, b = signature("to be or not to be that is the question"), signature("to be or not to be, that is a question!")
    >>> bool(0.3 < similarity(a, b) < 0.7)
    True
    """
    shingles = _shingles(plain_words(text))
    result = np.full(HASHES, 0xFFFFFFFF, dtype=np.uint32)
    for begin in range(0, len(shingles), _BLOCK):
        hashes = (_FACTORS * shingles[begin : begin + _BLOCK] + _SHIFTS) >> np.uint64(32)  # (hashes, shingles)
        result = np.minimum(result, hashes.min(axis=1).astype(np.uint32))
    return result


def bands(signatures: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return a hash of each band of signatures (documents, HASHES): (documents, BANDS); equal only within a band."""
    rows = signatures.reshape(len(signatures), BANDS, BAND).astype(np.uint64)
    hashes = np.zeros(rows.shape[:2], dtype=np.uint64) + np.arange(1, BANDS + 1, dtype=np.uint64) * _MIX[0]
    for number in range(BAND):
        hashes = _scrambled(hashes ^ (rows[..., number] + _MIX[1]))
    return hashes


def similarity(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the estimated Jaccard similarity of signatures (..., HASHES)."""
    return np.asarray((one == other).mean(axis=-1))


def _shingles(words: list[str]) -> NDArray[np.uint64]:
    """Return the distinct hashes of runs of words, (shingles,); of a shorter text one hash of all of it."""
    codes = np.array([zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in words], dtype=np.uint64)
    size = min(SHINGLE, max(len(codes), 1))
    hashes = np.full(max(len(codes) - size + 1, 1), size, dtype=np.uint64)
    for offset in range(min(size, len(codes))):
        hashes = _scrambled(hashes * _MIX[2] + codes[offset : offset + len(hashes)])
    return np.unique(hashes)


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over the whole number."""
    values = (values ^ (values >> np.uint64(29))) * _MIX[1]
    return values ^ (values >> np.uint64(32))
