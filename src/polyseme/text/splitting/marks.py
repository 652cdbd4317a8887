"""The characters that belong to the one before them: accents, vowel signs, joiners, emoji variants.

Python's `\\w` knows letters but not these, so a word pattern built on it alone would break `e` + U+0301 and most words
of Hindi. The class is read from Python's own Unicode tables when first needed (30 ms) and not at import.
"""

from __future__ import annotations

import functools
import unicodedata

_JOINERS = "\u00ad\u200c\u200d\u2060"  # soft hyphen, zero-width non-joiner and joiner, word joiner
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f\U000e0100-\U000e01ef"  # flags of regions; variants of ideographs


@functools.cache
def marks() -> str:
    """All combining marks, as the inside of a character class of a regular expression."""
    found = [point for point in range(0x20000) if unicodedata.category(chr(point)).startswith("M")]
    runs: list[list[int]] = []
    for point in found:
        if runs and point == runs[-1][1] + 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs) + _TAGS


@functools.cache
def within_words() -> str:
    """What may follow a letter inside a word: marks and invisible joiners, as the inside of a character class."""
    return marks() + _JOINERS


@functools.cache
def lone_sign() -> str:
    """A pattern for one sign that is no letter: with its marks, and with what a joiner ties to it (emoji families)."""
    sign = rf"[^\w\s][{marks()}{_SKIN_TONES}]*+"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    return rf"{flag}|{sign}(?:\u200d{sign})*+"
