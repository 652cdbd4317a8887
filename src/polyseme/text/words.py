"""Splitters: raw text into words, by name.

A model must see words split as in training, so a splitter has a name that is stored with the model:

- `whitespace`: the text is split already; Unicode white space stands between words.
- `english`: Penn Treebank tokens, by our own rules (`polyseme.text.splitting.english`).
- `chinese`: dictionary words, by rjieba (extra `zh`).
- `characters`: each Chinese, Japanese or Korean character is a word (`polyseme.text.splitting.characters`).
- `each-character`: the same, and each Latin letter and digit is a word too.
- `unigram`: the most probable words of a word list that is stored with the model (`polyseme.text.splitting.unigram`).

No splitter drops anything but white space: the words joined are the text without it. All but `whitespace` also drop
invisible characters, such as direction marks (`polyseme.text.splitting.unicode_classes`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from polyseme.base.errors import MissingExtraError, UsageError, arg, nearest
from polyseme.text.splitting.characters import split_characters, split_each_character
from polyseme.text.splitting.english import split_english
from polyseme.text.splitting.unicode_classes import strip_invisible
from polyseme.text.splitting.unigram import UNIGRAM, UnigramSegmenter
from polyseme.text.vocabulary import Vocabulary

_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "‟": '"'})
_PENN = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


class Splitter(Protocol):
    """Splits text into words. Splitters can be compared, hashed and pickled."""

    @property
    def name(self) -> str:
        """The name that is stored with a model."""

    def __call__(self, text: str) -> list[str]:
        """Return the words of a text."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class NamedSplitter:
    """A splitter that its name alone defines.

    >>> NamedSplitter("whitespace")("to be  or not")
    ['to', 'be', 'or', 'not']
    """

    name: str

    def __post_init__(self) -> None:
        if self.name == UNIGRAM:
            raise UsageError(f"{arg('splitter', UNIGRAM)} needs {arg('word_list')}: words, most frequent first, one per line")
        if self.name not in _SPLITTERS:
            raise UsageError(f"unknown splitter {self.name!r}{nearest(self.name, splitter_names())}")

    def __call__(self, text: str) -> list[str]:
        return _SPLITTERS[self.name](text)


def get_splitter(name: str, word_list: Sequence[str] | str | os.PathLike[str] | None = None) -> Splitter:
    """Return a splitter by name. `unigram` needs `word_list`: words, or a file of one word per line, most frequent first."""
    if word_list is None:
        return NamedSplitter(name)
    if name != UNIGRAM:
        raise UsageError(f"{arg('word_list')} applies only to {arg('splitter', UNIGRAM)}, not to {name!r}")
    words = Vocabulary.read(os.fspath(word_list)).words if isinstance(word_list, str | os.PathLike) else word_list
    return UnigramSegmenter(tuple(words))


def splitter_names() -> list[str]:
    """Return the names that `get_splitter` accepts."""
    return sorted([*_SPLITTERS, UNIGRAM])


def normalise_quotes(text: str) -> str:
    """Replace curly quotes by straight ones; the length stays the same.

    >>> normalise_quotes("“It’s”")
    '"It\\'s"'
    """
    return text.translate(_STRAIGHT)


def plain_word(word: str) -> str:
    """Undo curly quotes and Penn Treebank escapes.

    >>> [plain_word(word) for word in ("``", "n’t", "-LRB-", "bank")]
    ['"', "n't", '(', 'bank']
    """
    return _PENN.get(word) or normalise_quotes(word)


def _split_chinese(text: str) -> list[str]:
    try:
        import rjieba
    except ImportError as error:
        raise MissingExtraError("Chinese word segmentation needs rjieba", "zh") from error
    text = strip_invisible(text)
    try:
        tokens = rjieba.cut(text)
    except UnicodeEncodeError:  # Rust strings cannot hold lone surrogates: keep them apart
        parts = re.split(r"([\ud800-\udfff]+)", text)
        tokens = [token for i, part in enumerate(parts) for token in ([part] if i % 2 else rjieba.cut(part))]
    return [word for token in tokens for word in token.split()]


_SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "whitespace": str.split,
    "english": split_english,
    "chinese": _split_chinese,
    "characters": split_characters,
    "each-character": split_each_character,
}
WHITESPACE = NamedSplitter("whitespace")
