"""Words to be read in their context: a phrase in its sentence, or a sentence in its document.

An encoder gives them other vectors there than alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Sentences = tuple[tuple[str, ...], ...]
"""Consecutive sentences: a document, or a part of one."""
MAX_DOCUMENT_WORDS = 1000
"""Words of a document that are read together; a book is read in parts."""


class TextInContext(list[str]):
    """Some words of a sentence of a document, as a list; equal to any list of the same words.

    >>> phrase = TextInContext((("A", "film", "."), ("Not", "a", "good", "film")), 1, 1, 4)
    >>> phrase == ["a", "good", "film"], start_in_document(phrase)
    (True, 4)
    """

    def __init__(self, document: Sentences, sentence: int = 0, begin: int = 0, end: int | None = None) -> None:
        super().__init__(document[sentence][begin:end])
        self.document, self.begin = document, sum(map(len, document[:sentence])) + begin


def document_of(text: Sequence[str]) -> Sentences:
    """Return what an encoder reads: the document around the words, or the words as its only sentence."""
    return text.document if isinstance(text, TextInContext) else (tuple(text),)


def start_in_document(text: Sequence[str]) -> int:
    """Return where the words begin in their document, in words."""
    return text.begin if isinstance(text, TextInContext) else 0


def in_documents(
    sentences: Sequence[Sequence[str]], numbers: Sequence[int], *, max_words: int = MAX_DOCUMENT_WORDS
) -> list[TextInContext]:
    """Return sentences in the context of their documents; `numbers` gives the document of each.

    A document of more than `max_words` words is read in parts of at most that length, or of one longer sentence.

    >>> parts = in_documents([["Ann", "ran"], ["She", "fell"], ["Rain"]], [0, 0, 1])
    >>> [(part, len(part.document)) for part in parts]
    [(['Ann', 'ran'], 2), (['She', 'fell'], 2), (['Rain'], 1)]
    """
    return [TextInContext(part, i) for part in _parts(sentences, numbers, max_words) for i in range(len(part))]


def _parts(sentences: Sequence[Sequence[str]], numbers: Sequence[int], max_words: int) -> Iterator[Sentences]:
    part: list[tuple[str, ...]] = []
    current, words = None, 0
    for sentence, number in zip(sentences, numbers, strict=True):
        if part and (number != current or words + len(sentence) > max_words):
            yield tuple(part)
            part, words = [], 0
        part.append(tuple(sentence))
        current, words = number, words + len(sentence)
    if part:
        yield tuple(part)
