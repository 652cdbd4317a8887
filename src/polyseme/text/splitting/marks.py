"""The characters that are no word by themselves: accents, vowel signs, joiners, emoji variants, and marks that nobody sees.

Python's `\\w` knows letters but not these, so a word pattern built on it alone would break `e` + U+0301 and most words
of Hindi. The class is read from Python's own Unicode tables when first needed (30 ms) and not at import.

Most belong to the character before them. Marks of direction and byte order belong to none: they tell a screen how to lay a
line out, so they are dropped, and a Hebrew word is the same word with and without one. A zero-width space is a blank.
"""

from __future__ import annotations

import functools
import re
import unicodedata

INVISIBLE = "\u200b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
"""Zero-width space, all marks of direction, byte order mark: in no word of any splitter but `whitespace`."""

_ANY_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_GONE = {**dict.fromkeys(map(ord, INVISIBLE)), 0x200B: " "}
_JOINERS = "\u00ad\u200c\u200d\u2060"  # soft hyphen, zero-width non-joiner and joiner, word joiner
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f\U000e0100-\U000e01ef"  # flags of regions; variants of ideographs


def visible(text: str) -> str:
    """A text without `INVISIBLE` marks; where a zero-width space was, there is a blank.

    >>> visible("\\u200fa\\u200eb\\u200bc")
    'ab c'
    """
    if text.isascii() or not _ANY_INVISIBLE.search(text):  # nearly always: to translate every letter would take longer
        return text
    return text.translate(_GONE)


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
