"""Questions and paragraphs as words, and how long paragraphs are cut in training."""

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
    """A text, its words, and their characters in it."""

    text: str
    words: list[str]
    spans: list[CharSpan]


@dataclass(frozen=True, slots=True)
class TokenizedQuestion:
    """A question with its paragraphs as words."""

    question: ReadingQuestion
    paragraphs: list[Paragraph]
    gold: list[tuple[int, int, int]]
    """Gold answers: paragraph, first and last word."""


class ReadingData(TaskData):
    """Questions and paragraphs; the texts of a batch are its questions, and all their paragraphs in order."""

    def __init__(self, tokenized: Sequence[TokenizedQuestion], questions: Sequence[list[str]]) -> None:
        texts = [[words, *(each.words for each in one.paragraphs)] for words, one in zip(questions, tokenized, strict=True)]
        super().__init__([one.question for one in tokenized], texts)
        self._tokenized = list(tokenized)
        # padded words of an example, which bound the size of a batch
        self.lengths = [length * (len(each) - 1) for length, each in zip(self.lengths, self.texts, strict=True)]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        texts = [[self.texts[row][0] for row in rows], [text for row in rows for text in self.texts[row][1:]]]
        cached = None
        if self._caches is not None:
            cached = [[self._layers(cache, several) for cache in self._caches] for several in texts]
        return ExampleBatch([self._tokenized[row] for row in rows], texts, cached)


def split_paragraph(text: str | list[str], splitter: Splitter, known: dict[str, Paragraph]) -> Paragraph:
    """Return a text as words with their characters; a string that is in `known` is not split again."""
    if not isinstance(text, str):
        joined = join(text)
        return Paragraph(joined, text, word_offsets(text, joined))
    if text not in known:
        words = splitter(text)
        known[text] = Paragraph(text, words, word_offsets(words, text))
    return known[text]


def word_spans(spans: Sequence[AnswerSpan], paragraphs: Sequence[Paragraph]) -> list[tuple[int, int, int]]:
    """Return spans of characters as paragraph, first and last word, each once."""
    found = []
    for span in spans:
        words = words_within(paragraphs[span.paragraph].spans, span.begin, span.end)
        if words:
            found.append((span.paragraph, words[0], words[-1]))
    return list(dict.fromkeys(found))


# ---- long paragraphs in training


def truncate_paragraphs(batch: ExampleBatch, most: int) -> ExampleBatch:
    """Return a batch whose paragraphs have at most `most` words."""
    questions, begins = [], []
    for each in batch.examples:
        question, starts = _truncate(each, most)
        questions.append(question)
        begins += starts
    texts = [text[begin : begin + most] for text, begin in zip(batch.texts[1], begins, strict=True)]
    cached = batch.cached and [batch.cached[0], [_windows(layers, texts, begins) for layers in batch.cached[1]]]
    return ExampleBatch(questions, [batch.texts[0], texts], cached)


def _truncate(tokenized: TokenizedQuestion, most: int) -> tuple[TokenizedQuestion, list[int]]:
    """Return a question with shorter paragraphs, and the first word of each.

    Where its first answer is in what remains follows from the question: anywhere, and the same in every run.
    """
    begins, paragraphs, gold = [], [], []
    draw = zlib.crc32(tokenized.question.text.encode("utf-8", "surrogatepass"))
    for number, paragraph in enumerate(tokenized.paragraphs):
        right = [(first, last) for which, first, last in tokenized.gold if which == number]
        begin = 0
        if right and len(paragraph.words) > most:
            first, last = right[0]
            before = draw % max(most - (last - first), 1)  # words before it
            begin = min(max(first - before, 0), max(len(paragraph.words) - most, 0))
        window = slice(begin, begin + most)
        paragraphs.append(dataclasses.replace(paragraph, words=paragraph.words[window], spans=paragraph.spans[window]))
        inside = [(first - begin, last - begin) for first, last in right if begin <= first and last < begin + most]
        if right and not inside:  # longer than what remains: its beginning
            inside = [(0, most - 1)]
        gold += [(number, first, last) for first, last in inside]
        begins.append(begin)
    return TokenizedQuestion(tokenized.question, paragraphs, gold), begins


def _windows(layers: Tensor, texts: Sequence[Sequence[str]], begins: Sequence[int]) -> Tensor:
    """(layers, paragraphs, words, dim): the words of each shorter text, from its first word on."""
    windows = layers.new_zeros(*layers.shape[:2], max(map(len, texts)), layers.shape[3])
    for row, (text, begin) in enumerate(zip(texts, begins, strict=True)):
        windows[:, row, : len(text)] = layers[:, row, begin : begin + len(text)]
    return windows
