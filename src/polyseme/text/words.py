"""Raw text into words, by the name of the way to do it.

A model must meet words cut the way it was trained, so the way has a name that is stored with the model:

- `whitespace`: the text was split already; Unicode white space stands between words.
- `english`: Penn Treebank words, by our own rules (`polyseme.text.splitting.english`).
- `chinese`: dictionary words, by rjieba (extra `zh`).
- `characters`: every Chinese, Japanese or Korean character is a word, and so is every letter of Thai, Lao, Khmer and Burmese,
  with the vowel and tone signs that are written on it; runs of other letters and digits stay together.
- `likeliest`: the likeliest words of a list that comes with the model (`polyseme.text.splitting.likeliest`).

All lose nothing but white space: the words joined are the text without it. All but `whitespace` lose invisible marks too, such
as those of direction (`polyseme.text.splitting.marks`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyseme.base.errors import MissingExtraError, UsageError, nearest
from polyseme.text.splitting.english import split_english
from polyseme.text.splitting.marks import lone_sign, marks, visible, within_words

CJK = "々〇\u1100-\u11ff\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
CJK += "\uf900-\ufaff\uff66-\uffdc\U00016fe0-\U00018dff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
"""Chinese, Japanese and Korean, as the inside of a character class."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
"""Thai, Lao, Burmese and Khmer, which have no blanks between words either."""

_STACKS = "\u1039\u17d2"  # of Burmese and Khmer: puts the next letter below this one
_AM = "\u0e33\u0eb3"  # of Thai and Lao: a vowel that is half above the letter; a letter to Unicode, but never one to begin with

_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'})


LIKELIEST = "likeliest"
_PENN = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


@dataclass(frozen=True, slots=True)
class Splitter:
    """A way to split text, known by its name alone: equal by name, and cheap to send to another process.

    `likeliest` is the exception: its list of words belongs to it (`polyseme.text.splitting.likeliest`).

    >>> Splitter("whitespace")("to be  or not")
    ['to', 'be', 'or', 'not']
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _WAYS:
            lack = " without a list of words" if self.name == LIKELIEST else ""
            raise UsageError(f"there is no way to split words called {self.name!r}{lack}{nearest(self.name, _WAYS)}")

    def __call__(self, text: str) -> list[str]:
        return _WAYS[self.name](text)


def splitter(name: str, words: Sequence[str] | None = None) -> Splitter:
    """The splitter of that name; `likeliest` needs a list of words, most frequent first."""
    if name != LIKELIEST:
        if words is not None:
            raise UsageError(f"a list of words was given, but the splitter is {name!r}; only {LIKELIEST!r} takes one")
        return Splitter(name)
    if words is None:
        raise UsageError(f"the splitter {LIKELIEST!r} needs a list of words, most frequent first")
    from polyseme.text.splitting.likeliest import LikeliestSplitter

    return LikeliestSplitter(words)


def splitter_names() -> list[str]:
    """The names that `splitter` knows."""
    return sorted([*_WAYS, LIKELIEST])


def normalise_quotes(text: str) -> str:
    """Curly quotes made straight; the length stays.

    >>> normalise_quotes("“It’s”")
    '"It\\'s"'
    """
    return text.translate(_STRAIGHT)


def plain_word(word: str) -> str:
    """A word as running text with straight quotes has it: no curly quotes, and no escapes of the Penn Treebank.

    >>> [plain_word(word) for word in ("``", "n’t", "-LRB-", "bank")]
    ['"', "n't", '(', 'bank']
    """
    return _PENN.get(word) or normalise_quotes(word)


def _split_chinese(text: str) -> list[str]:
    cut = _rjieba_cut()
    text = visible(text)
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


def split_characters(text: str) -> list[str]:
    return _characters_pattern().findall(visible(text))


@functools.cache
def unspaced_letter() -> str:
    """A pattern for one letter of a script without blanks, with the marks that belong to it.

    Behind a CJK character a joiner is none of its marks.
    """
    stacked = rf"[{_STACKS}][^\W\d_]"
    return rf"(?:[{CJK}][{marks()}]*+|(?!\d)[{_UNSPACED}](?:{stacked}|[{within_words()}{_AM}])*+)"


@functools.cache
def _characters_pattern() -> re.Pattern[str]:
    letter = rf"(?:[^\W{CJK}{_UNSPACED}]|\d)"
    # A joiner or mark behind a letter is part of its word.
    run = rf"(?:{letter}[{within_words()}]*+)++"
    return re.compile(rf"{unspaced_letter()}|{run}|{lone_sign()}|\S")


_WAYS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "english": split_english,
    "chinese": _split_chinese,
    "characters": split_characters,
}
