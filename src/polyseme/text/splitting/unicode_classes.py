"""Character classes that Python's `re` lacks: combining marks, joiners, emoji modifiers, invisible characters.

`\\w` matches letters but not combining marks, so a word pattern built on it alone breaks `e` + U+0301 and most words of
Hindi. The classes come from Python's own Unicode tables and are built when first needed (30 ms), not at import.

Most of these characters belong to the one before them. Direction marks and byte order marks belong to none: they control
layout only, so they are dropped, and a Hebrew word is the same with and without them. A zero-width space is a space.
"""

from __future__ import annotations

import functools
import re
import unicodedata

INVISIBLE = "\u200b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
"""Zero-width space, direction marks, byte order mark: no splitter but `whitespace` keeps them."""

_ANY_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_REMOVE = {**dict.fromkeys(map(ord, INVISIBLE)), 0x200B: " "}
_JOINERS = "\u00ad\u200c\u200d\u2060"  # soft hyphen, zero-width non-joiner and joiner, word joiner
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_TAGS = "\U000e0020-\U000e007f\U000e0100-\U000e01ef"  # flags of regions; variants of ideographs


def strip_invisible(text: str) -> str:
    """Remove `INVISIBLE` characters; a zero-width space becomes a space.

    >>> strip_invisible("\\u200fa\\u200eb\\u200bc")
    'ab c'
    """
    if text.isascii() or not _ANY_INVISIBLE.search(text):  # nearly always, and faster than translating each letter
        return text
    return text.translate(_REMOVE)


@functools.cache
def combining_marks() -> str:
    """Return all combining marks, as the inside of a character class."""
    marks = [point for point in range(0x20000) if unicodedata.category(chr(point)).startswith("M")]
    runs: list[list[int]] = []
    for point in marks:
        if runs and point == runs[-1][1] + 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in runs) + _TAGS


@functools.cache
def word_internal() -> str:
    """Return what may follow a letter inside a word (combining marks, invisible joiners), as the inside of a class."""
    return combining_marks() + _JOINERS


@functools.cache
def symbol_pattern() -> str:
    """Return a pattern for one symbol with its marks and with what a joiner ties to it (emoji families, flags)."""
    symbol = rf"[^\w\s][{combining_marks()}{_SKIN_TONES}]*+"
    flag = "[\U0001f1e6-\U0001f1ff]{2}"
    return rf"{flag}|{symbol}(?:\u200d{symbol})*+"
