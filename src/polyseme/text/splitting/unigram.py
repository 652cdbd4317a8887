"""A unigram segmenter: text without spaces between words, split into the most probable words of a list.

The list comes with the model, most frequent word first, so a Chinese model needs no other segmenter and splits the same way
on every machine. A word's probability falls with its rank (Zipf's law), and of all segmentations of a run of characters the
one with the highest product wins (Viterbi). A character that no word covers stands alone with its combining marks: no word
ends between a Thai letter and its vowel or tone sign. Other letters and numbers stay in runs, as in `characters`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyseme.base.errors import UsageError, arg
from polyseme.text.splitting.characters import split_characters, unspaced_letter
from polyseme.text.splitting.unicode_classes import strip_invisible

UNIGRAM = "unigram"
"""The name of this splitter."""
_MAX_LENGTH = 12  # characters of a word; longer ones in the list are split into shorter words
_SHIFT = 2.7  # of Zipf's law, after Mandelbrot


@dataclass(frozen=True)
class UnigramSegmenter:
    """Splits by a word list, most frequent first. Two segmenters are equal where their words are.

    >>> UnigramSegmenter(("的", "包袱", "他", "包", "很", "重"))("他的包袱很重，重3.5kg")
    ['他', '的', '包袱', '很', '重', '，', '重', '3.5', 'kg']
    """

    words: tuple[str, ...] = field(compare=False, repr=False)
    fingerprint: str = field(init=False)
    """A hash of the words."""
    name: ClassVar[str] = UNIGRAM
    _costs: dict[str, float] = field(init=False, compare=False, repr=False)
    _max_length: int = field(init=False, compare=False, repr=False)
    _unknown_cost: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not any(self.words):
            raise UsageError(f"the word list is empty; {arg('splitter', UNIGRAM)} needs words, most frequent first")
        words = tuple(dict.fromkeys(self.words))
        total = sum(1 / (rank + _SHIFT) for rank in range(len(words)))
        costs = {word: math.log((rank + _SHIFT) * total) for rank, word in enumerate(words) if 0 < len(word) <= _MAX_LENGTH}
        values: dict[str, Any] = {
            "words": words,
            "fingerprint": hashlib.sha256(json.dumps(words).encode()).hexdigest(),
            "_costs": costs,
            "_max_length": max(map(len, costs), default=1),
            "_unknown_cost": math.log((len(words) + _SHIFT) * total) + 1.0,  # rarer than the rarest word
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, text: str) -> list[str]:
        text = strip_invisible(text)
        words: list[str] = []
        begin = 0
        for match in _pattern().finditer(text):
            words += split_characters(text[begin : match.start()])
            run = match.group()
            words += [run] if run[0].isascii() else self._segment(run)  # a number, or a run of letters
            begin = match.end()
        return words + split_characters(text[begin:])

    def _segment(self, run: str) -> list[str]:
        """Return the most probable words of a run, by dynamic programming over the ends of words."""
        best, back = [0.0], [0]
        get, max_length = self._costs.get, self._max_length
        end = 0
        for letter in _letter().findall(run):
            last, end = end, end + len(letter)
            lowest, begin_of_best = best[last] + get(letter, self._unknown_cost), last
            for begin in range(max(0, end - max_length), last):
                cost = get(run[begin:end])
                if cost is not None and best[begin] + cost < lowest:
                    lowest, begin_of_best = best[begin] + cost, begin
            if end - last > 1:  # no word ends before a combining mark
                best += [math.inf] * (end - last - 1)
                back += [last] * (end - last - 1)
            best.append(lowest)
            back.append(begin_of_best)
        words = []
        while end:
            words.append(run[back[end] : end])
            end = back[end]
        return words[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return UnigramSegmenter, (self.words,)


@functools.cache
def _pattern() -> re.Pattern[str]:
    """Runs of unspaced letters, and numbers with points or commas inside."""
    return re.compile(rf"{unspaced_letter()}++|[0-9]+(?:[.,][0-9]+)+")


@functools.cache
def _letter() -> re.Pattern[str]:
    return re.compile(unspaced_letter())
