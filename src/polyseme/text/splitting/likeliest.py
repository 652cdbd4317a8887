"""Text without blanks between words, cut into the likeliest words of a list.

The list is a model's own, most frequent word first, so that a model of Chinese needs no segmenter beside it and cuts the same
way on every machine. A word's probability falls with its place in the list, as in any language (Zipf's law), and of all ways
to cut a run of characters the one with the highest product is taken. A character that no word covers stands alone, with its
marks: no word ends between a letter of Thai and its vowel or tone sign. Other letters and numbers go by their runs, as in
`characters`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from polyseme.base.errors import UsageError
from polyseme.text.splitting.marks import visible
from polyseme.text.words import Splitter, split_characters, unspaced_letter

_LONGEST = 12
"""Characters of a word; longer ones in the list are left to their parts."""
_SHIFT = 2.7  # of Zipf's law, after Mandelbrot


class LikeliestSplitter(Splitter):
    """Cuts by a list of words, most frequent first.

    >>> LikeliestSplitter(["的", "包袱", "他", "包", "很", "重"])("他的包袱很重，重3.5kg")
    ['他', '的', '包袱', '很', '重', '，', '重', '3.5', 'kg']
    """

    __slots__ = ("_alone", "_costs", "_longest", "fingerprint", "words")
    words: tuple[str, ...]
    fingerprint: str
    """Of the words: what makes two of these equal."""
    _costs: dict[str, float]
    _longest: int
    _alone: float

    def __init__(self, words: Sequence[str]) -> None:
        if not any(words):
            raise UsageError("the list of words is empty; the splitter 'likeliest' needs one, most frequent first")
        held = tuple(dict.fromkeys(words))
        total = sum(1 / (place + _SHIFT) for place in range(len(held)))
        costs = {word: math.log((place + _SHIFT) * total) for place, word in enumerate(held) if 0 < len(word) <= _LONGEST}
        values: dict[str, Any] = {
            "name": "likeliest",
            "words": held,
            "fingerprint": hashlib.sha256(json.dumps(held).encode()).hexdigest(),
            "_costs": costs,
            "_longest": max(map(len, costs), default=1),
            "_alone": math.log((len(held) + _SHIFT) * total) + 1.0,  # rarer than the rarest word
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # frozen, as every splitter

    def __call__(self, text: str) -> list[str]:
        text = visible(text)
        words: list[str] = []
        begin = 0
        for run in _pattern().finditer(text):
            words += split_characters(text[begin : run.start()])
            found = run.group()
            words += [found] if found[0].isascii() else self._cut(found)  # a number, or a run
            begin = run.end()
        return words + split_characters(text[begin:])

    def _cut(self, run: str) -> list[str]:
        """The likeliest words of a run: at each end, the best of all words that end there."""
        best, back = [0.0], [0]
        get, longest, alone = self._costs.get, self._longest, self._alone
        end = 0
        for letter in _letter().findall(run):
            last, end = end, end + len(letter)
            lowest, place = best[last] + get(letter, alone), last
            for begin in range(max(0, end - longest), last):
                cost = get(run[begin:end])
                if cost is not None and best[begin] + cost < lowest:
                    lowest, place = best[begin] + cost, begin
            if end - last > 1:  # no word ends before a mark
                best += [math.inf] * (end - last - 1)
                back += [last] * (end - last - 1)
            best.append(lowest)
            back.append(place)
        words = []
        while end:
            words.append(run[back[end] : end])
            end = back[end]
        return words[::-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LikeliestSplitter) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return LikeliestSplitter, (self.words,)


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Runs without blanks, and numbers with points or commas inside."""
    return re.compile(rf"{unspaced_letter()}++|[0-9]+(?:[.,][0-9]+)+")


@functools.cache
def _letter() -> re.Pattern[str]:
    return re.compile(unspaced_letter())
