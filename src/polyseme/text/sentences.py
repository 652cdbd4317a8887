"""Paragraphs into sentences, by the name of the way to do it.

- `lines`: the text was split already; a line is a sentence.
- `english`: rules (`polyseme.text.splitting.english_sentences`).
- `chinese`: at 。！？…, with the quotes and brackets that close behind them; no rule is needed, because Chinese stops
  have no other use. A semicolon does not end a sentence.

All three lose nothing but white space, and take time that grows with the text only. Rules were chosen against a trained
splitter (Punkt, a network): they need no data, give the same on every machine, and a wrong cut costs a language model
one missing neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from polyseme.base.errors import UsageError, nearest
from polyseme.text.splitting.english_sentences import english_sentences

_STOPS, _CLOSING, _GOES_ON = "。！？…!?｡", "”’」』〕）》】〉\"')\\]", "，、；：,;:"
_CHINESE_END = re.compile(rf"(?:[{_STOPS}]++[{_CLOSING}]*+)++(?![{_GOES_ON}])")


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """A way to split paragraphs, known by its name alone, like `polyseme.text.words.Splitter`.

    >>> SentenceSplitter("chinese")("他说：“好。”我走了。")
    ['他说：“好。”', '我走了。']
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _WAYS:
            raise UsageError(f"there is no way to split sentences called {self.name!r}{nearest(self.name, _WAYS)}")

    def __call__(self, paragraph: str) -> list[str]:
        """The sentences of a paragraph, without white space around them; blank ones are left out."""
        return _WAYS[self.name](paragraph)


def sentence_splitter(name: str) -> SentenceSplitter:
    """The splitter of that name: `lines`, `english` or `chinese`."""
    return SentenceSplitter(name)


def _lines(paragraph: str) -> list[str]:
    return [line for line in map(str.strip, paragraph.split("\n")) if line]


def _chinese(paragraph: str) -> list[str]:
    sentences = []
    start = 0
    for end in _CHINESE_END.finditer(paragraph):
        sentences.append(paragraph[start : end.end()].strip())
        start = end.end()
    last = paragraph[start:].strip()
    return [*sentences, last] if last else sentences


_WAYS: dict[str, Callable[[str], list[str]]] = {
    "lines": _lines,
    "english": english_sentences,
    "chinese": _chinese,
}
