"""Which word of a sentence is meant: by its position, or by the word itself."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.base.display import short
from polyseme.base.errors import UsageError, arg
from polyseme.encoders.batch import Sentence, whole_number

_SHOWN = 30  # words in a message


def find_position(sentence: Sentence, words: Sequence[str], word: str | None, position: int | None) -> int:
    """Return the position, from 0, that `word` or `position` names among the words of a sentence.

    >>> find_position("the bank", ["the", "bank"], "bank", None)
    1
    """
    if (word is None) == (position is None):
        raise UsageError(f"give {arg('word')} or {arg('position')}; the words are {_numbered(words)}")
    if position is not None:
        number = whole_number(position)
        if number is None or not 0 <= number < len(words):
            raise UsageError(f"{arg('position')} is {position}; the sentence has {len(words)} words, counted from 0")
        return number
    found = [number for number, each in enumerate(words) if each == word]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{word!r} occurs at positions {', '.join(map(str, found))}: choose one with {arg('position')}")
    if word and isinstance(sentence, str) and word in sentence:
        split = f"the model splits the sentence into {_numbered(words)}"
        raise UsageError(f"{word!r} is not a word of its own: {split}; choose one with {arg('position')}")
    raise UsageError(f"{word!r} is not in the sentence; its words are {_numbered(words)}")


def _numbered(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return ", ".join(f"{number}: {short(word, 20)}" for number, word in enumerate(words[:_SHOWN])) + more
