"""The quality of a document, by rules that keep prose and drop menus, lists of keywords and machine output.

The rules are those of Gopher (Rae et al. 2021, appendix A.1), as far as they judge a document by itself; each has a setting.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass

from polyseme.base.config import Config, setting
from polyseme.text.filtering.language import Language, language_of
from polyseme.text.filtering.plain_words import plain_words

_GROUP = "Filters"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")


@dataclass(frozen=True, kw_only=True)
class FilterConfig(Config):
    """Which documents are kept. A document is a line of text, or a row."""

    language: tuple[Language, ...] = setting(
        (), "Keep these languages; detected by script and frequent words.", default_text="all", group=_GROUP
    )
    min_words: int = setting(5, "Drop documents with fewer words.", min=0, group=_GROUP)
    max_words: int = setting(100_000, "Drop documents with more words.", min=1, group=_GROUP)
    min_word_length: float = setting(2.0, "Drop documents whose words are shorter on average.", min=0, group=_GROUP)
    max_word_length: float = setting(12.0, "Drop documents whose words are longer on average.", min=1, group=_GROUP)
    max_symbols: float = setting(
        0.1, "Drop documents with more than this many hash signs and ellipses per word.", min=0, group=_GROUP
    )
    min_alphabetic: float = setting(
        0.7, "Drop documents in which less than this fraction of the words has a letter.", min=0, max=1, group=_GROUP
    )
    max_repetition: float = setting(
        0.2, "Drop documents of 20 words or more in which one word pair makes up more than this fraction of all pairs.",
        min=0, max=1, group=_GROUP,
    )  # fmt: skip


def reason_to_drop(text: str, config: FilterConfig) -> str | None:
    """Return why a document is dropped; None: it is kept.

    >>> reason_to_drop("Home | News | Contact", FilterConfig()), reason_to_drop("It was late when we left.", FilterConfig())
    ('too few words', None)
    """
    words = plain_words(text)
    if len(words) < config.min_words:
        return "too few words"
    if len(words) > config.max_words:
        return "too many words"
    if config.language and (found := language_of(text)) not in config.language:
        return f"language {found or 'not known'}"
    return _shape(text, words, config) if words else None


def _shape(text: str, words: list[str], config: FilterConfig) -> str | None:
    if sum(map(bool, map(_UNSPACED.match, words))) < len(words) / 2:  # words of one character say nothing about their length
        length = sum(map(len, words)) / len(words)
        if length < config.min_word_length:
            return "words too short"
        if length > config.max_word_length:
            return "words too long"
    if text.count("#") + text.count("...") + text.count("…") > config.max_symbols * len(words):
        return "too many symbols"
    tokens = text.split()
    if sum(any(sign.isalpha() for sign in token) for token in tokens) < config.min_alphabetic * len(tokens):
        return "too few letters"
    if len(words) >= 20:
        pairs = Counter(itertools.pairwise(words))
        if pairs.most_common(1)[0][1] > config.max_repetition * (len(words) - 1):
            return "too repetitive"
    return None
