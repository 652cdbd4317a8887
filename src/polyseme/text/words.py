"""Raw text into words, by the name of the way to do it.

A model must meet words cut the way it was trained, so the way has a name that is stored with the model:

- `whitespace`: the text was split already; Unicode white space stands between words.
- `english`: Penn Treebank words, by our own rules (`polyseme.text.english`).
- `chinese`: dictionary words, by rjieba (extra `zh`).
- `characters`: every Chinese, Japanese or Korean character is a word; runs of other letters and digits stay together.

All four lose nothing but white space: the words joined are the text without it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass

from polyseme.base.errors import MissingExtraError, UsageError, nearest
from polyseme.text.english import split_english
from polyseme.text.marks import lone_sign, marks, within_words

_CJK = "々〇\u1100-\u11ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
_CJK += "\uf900-\ufaff\uff66-\uffdc\U00016fe0-\U00018dff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'})


@dataclass(frozen=True, slots=True)
class Splitter:
    """A way to split text, known by its name alone: equal by name, and cheap to send to another process.

    >>> Splitter("whitespace")("to be  or not")
    ['to', 'be', 'or', 'not']
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _WAYS:
            raise UsageError(f"there is no way to split words called {self.name!r}{nearest(self.name, _WAYS)}")

    def __call__(self, text: str) -> list[str]:
        return _WAYS[self.name](text)


def splitter(name: str) -> Splitter:
    """The splitter of that name: `whitespace`, `english`, `chinese` or `characters`."""
    return Splitter(name)


def splitter_names() -> list[str]:
    """The names that `splitter` knows."""
    return sorted(_WAYS)


def normalise_quotes(text: str) -> str:
    """Curly quotes made straight; the length stays.

    >>> normalise_quotes("“It’s”")
    '"It\\'s"'
    """
    return text.translate(_STRAIGHT)


def _split_chinese(text: str) -> list[str]:
    cut = _rjieba_cut()
    try:
        pieces = cut(text)
    except UnicodeEncodeError:  # lone surrogates, which Rust strings cannot hold, stand apart
        parts = re.split(r"([\ud800-\udfff]+)", text)
        pieces = [piece for place, part in enumerate(parts) for piece in ([part] if place % 2 else cut(part))]
    return [word for piece in pieces for word in piece.split()]


def _rjieba_cut() -> Callable[[str], list[str]]:
    try:
        import rjieba
    except ImportError as error:
        raise MissingExtraError("Chinese word segmentation needs rjieba", "zh") from error
    cut: Callable[[str], list[str]] = rjieba.cut
    return cut


def _split_characters(text: str) -> list[str]:
    return _characters_pattern().findall(text)


@functools.cache
def _characters_pattern() -> re.Pattern[str]:
    letter = rf"[^\W{_CJK}]"
    # A joiner or mark behind a letter is part of its word; behind a CJK character only its own marks are.
    run = rf"(?:{letter}[{within_words()}]*+)++"
    return re.compile(rf"[{_CJK}][{marks()}]*+|{run}|{lone_sign()}|\S")


_WAYS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "english": split_english,
    "chinese": _split_chinese,
    "characters": _split_characters,
}
