"""Which word of a sentence the user means."""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.base.errors import UsageError
from polyseme.cli import show


def find_place(sentence: str, words: Sequence[str], word: str | None, position: int | None) -> int:
    """The place, from 0, that `--word` or `--position` names among the words of a sentence."""
    if (word is None) == (position is None):
        raise UsageError(f"give --word WORD or --position N; the words are {_numbered(words)}")
    if position is not None:
        return position
    places = [number for number, each in enumerate(words) if each == word]
    if len(places) == 1:
        return places[0]
    if places:
        raise UsageError(f"{word!r} stands at {', '.join(map(str, places))}: choose one with --position")
    if word and word in sentence:
        raise UsageError(
            f"{word!r} is no word here: the model cuts the sentence into {_numbered(words)}; choose one with --position"
        )
    raise UsageError(f"{word!r} is not in the sentence; its words are {_numbered(words)}")


def _numbered(words: Sequence[str]) -> str:
    more = f" and {len(words) - 30} more" if len(words) > 30 else ""
    return ", ".join(f"{number}: {show.short(word, 20)}" for number, word in enumerate(words[:30])) + more
