"""Questions with their paragraphs in words, and how long paragraphs are cut in training."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.text.labelled.squad import AnswerSpan, ReadingQuestion
from polyseme.text.splitting.alignment import join
from polyseme.text.splitting.offsets import CharSpan, word_offsets, words_within
from polyseme.text.words import Splitter


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text, its words, and where they stand in it."""

    text: str
    words: list[str]
    places: list[CharSpan]


@dataclass(frozen=True, slots=True)
class TokenizedQuestion:
    """A question with its paragraphs in words."""

    question: ReadingQuestion
    paragraphs: list[Paragraph]
    gold: list[tuple[int, int, int]]
    """Right answers: paragraph, first and last word."""


class ReadingData(TaskData):
    """Questions and paragraphs; the texts of a batch are its questions, and all their paragraphs one after another."""

    def __init__(self, asked: Sequence[TokenizedQuestion], questions: Sequence[list[str]]) -> None:
        texts = [[words, *(each.words for each in one.paragraphs)] for words, one in zip(questions, asked, strict=True)]
        super().__init__([one.question for one in asked], texts)
        self._asked = list(asked)
        # padded words of an example: what a batch's size is bounded by
        self.lengths = [length * (len(each) - 1) for length, each in zip(self.lengths, self.texts, strict=True)]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        texts = [[self.texts[row][0] for row in rows], [text for row in rows for text in self.texts[row][1:]]]
        cached = None
        if self._caches is not None:
            cached = [[self._layers(cache, several) for cache in self._caches] for several in texts]
        return ExampleBatch([self._asked[row] for row in rows], texts, cached)


def paragraph_of(text: str | list[str], cut: Splitter, known: dict[str, Paragraph]) -> Paragraph:
    if not isinstance(text, str):
        whole = join(text)
        return Paragraph(whole, text, word_offsets(text, whole))
    if text not in known:
        words = cut(text)
        known[text] = Paragraph(text, words, word_offsets(words, text))
    return known[text]


def in_words(spans: Sequence[AnswerSpan], paragraphs: Sequence[Paragraph]) -> list[tuple[int, int, int]]:
    """Spans of characters as paragraph, first and last word, each once."""
    found = []
    for span in spans:
        words = words_within(paragraphs[span.paragraph].places, span.begin, span.end)
        if words:
            found.append((span.paragraph, words[0], words[-1]))
    return list(dict.fromkeys(found))


# ---- long paragraphs in training


def shortened(batch: ExampleBatch, longest: int) -> ExampleBatch:
    """A batch whose paragraphs have `longest` words at most."""
    asked, begins = [], []
    for each in batch.examples:
        cut, places = _shorter(each, longest)
        asked.append(cut)
        begins += places
    texts = [text[begin : begin + longest] for text, begin in zip(batch.texts[1], begins, strict=True)]
    cached = batch.cached and [batch.cached[0], [_windows(layers, texts, begins) for layers in batch.cached[1]]]
    return ExampleBatch(asked, [batch.texts[0], texts], cached)


def _shorter(asked: TokenizedQuestion, longest: int) -> tuple[TokenizedQuestion, list[int]]:
    """A question with shorter paragraphs, and with which word each now begins.

    Where its first answer stands in what is left follows from the question: anywhere, and the same in every run.
    """
    begins, paragraphs, gold = [], [], []
    draw = zlib.crc32(asked.question.text.encode("utf-8", "surrogatepass"))
    for number, paragraph in enumerate(asked.paragraphs):
        right = [(first, last) for place, first, last in asked.gold if place == number]
        begin = 0
        if right and len(paragraph.words) > longest:
            first, last = right[0]
            before = draw % max(longest - (last - first), 1)  # words in front of it
            begin = min(max(first - before, 0), max(len(paragraph.words) - longest, 0))
        window = slice(begin, begin + longest)
        paragraphs.append(dataclasses.replace(paragraph, words=paragraph.words[window], places=paragraph.places[window]))
        inside = [(first - begin, last - begin) for first, last in right if begin <= first and last < begin + longest]
        if right and not inside:  # longer than what is left: its beginning
            inside = [(0, longest - 1)]
        gold += [(number, first, last) for first, last in inside]
        begins.append(begin)
    return TokenizedQuestion(asked.question, paragraphs, gold), begins


def _windows(layers: Tensor, texts: Sequence[Sequence[str]], begins: Sequence[int]) -> Tensor:
    """(layers, paragraphs, words, dim): of each paragraph the words of a shorter text, from some word on."""
    found = layers.new_zeros(*layers.shape[:2], max(map(len, texts)), layers.shape[3])
    for row, (text, begin) in enumerate(zip(texts, begins, strict=True)):
        found[:, row, : len(text)] = layers[:, row, begin : begin + len(text)]
    return found
