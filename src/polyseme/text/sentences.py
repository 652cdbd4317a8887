"""Sentence splitters: paragraphs into sentences, by name.

- `lines`: the text is split already; a line is a sentence.
- `english`: rules (`polyseme.text.splitting.english_sentences`).
- `chinese`: at 。！？…, with the closing quotes and brackets that follow. Chinese stops have no other use, so no rules are
  needed. A semicolon does not end a sentence.

They drop nothing but white space, and their time is linear in the text. Rules were chosen against a trained splitter
(Punkt, a network): they need no data, are the same on every machine, and a wrong boundary costs a language model one missing
neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from polyseme.base.errors import UsageError, nearest
from polyseme.text.splitting.english_sentences import english_sentences

_STOPS, _CLOSING, _CONTINUES = "。！？…!?｡", "”’」』〕）》】〉\"')\\]", "，、；：,;:"
_CHINESE_END = re.compile(rf"(?:[{_STOPS}]++[{_CLOSING}]*+)++(?![{_CONTINUES}])")


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """Splits paragraphs into sentences: `lines`, `english` or `chinese`.

    >>> SentenceSplitter("chinese")("他说：“好。”我走了。")
    ['他说：“好。”', '我走了。']
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _SPLITTERS:
            raise UsageError(f"unknown sentence splitter {self.name!r}{nearest(self.name, _SPLITTERS)}")

    def __call__(self, paragraph: str) -> list[str]:
        """Return the sentences of a paragraph without surrounding white space; blank ones are dropped."""
        return _SPLITTERS[self.name](paragraph)


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


_SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "lines": _lines,
    "english": english_sentences,
    "chinese": _chinese,
}
