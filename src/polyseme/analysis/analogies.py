"""Analogies: Athens is to Greece as Baghdad is to ... Google's set (Mikolov et al. 2013) and its like, by 3CosAdd.

A question with a word that the model does not know is left out, and counted; capitals do not matter where the model lacks a
word as it is written. An answer is right where it is the word asked for, capitals aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.analysis.words import WordSpace
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.text.labelled.numbered_lines import numbered_lines

Question = tuple[str, str, str, str]
UNNAMED = "questions"
"""The section of questions that stand before any, or in a file without."""


@dataclass(frozen=True)
class SectionScore:
    """How a section went."""

    right: int = 0
    asked: int = 0
    """Questions whose four words the model knows."""
    left_out: int = 0
    """The other questions."""

    @property
    def accuracy(self) -> float | None:
        """Of those asked; None where there were none."""
        return self.right / self.asked if self.asked else None

    def __add__(self, other: SectionScore) -> SectionScore:
        return SectionScore(self.right + other.right, self.asked + other.asked, self.left_out + other.left_out)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"accuracy": self.accuracy, "right": self.right, "asked": self.asked, "left_out": self.left_out}


@dataclass(frozen=True)
class AnalogyScores:
    """How each section went, and how many words the model does not know."""

    sections: dict[str, SectionScore]
    unknown: list[str]

    @property
    def total(self) -> SectionScore:
        """All sections together."""
        return sum(self.sections.values(), SectionScore())


def read_analogies(path: str | Path) -> dict[str, list[Question]]:
    """Questions by section: lines of four words divided by blanks or tabs, and before each section a line `: its name`."""
    sections: dict[str, list[Question]] = {}
    name = UNNAMED
    for number, line in numbered_lines(path):
        words = line.split()
        if line.startswith(":"):
            name = line[1:].strip() or UNNAMED
        elif len(words) == 4:
            sections.setdefault(name, []).append((words[0], words[1], words[2], words[3]))
        elif words:
            raise FormatError(f"{path}:{number}", f"has {len(words)} words, {line[:40]!r}; expected four, or `: section`")
    if not sections:
        raise FormatError(path, "holds no questions; expected four words on a line")
    return sections


def probe_analogies(space: WordSpace, sections: dict[str, list[Question]]) -> AnalogyScores:
    """Answer the questions of each section."""
    known: dict[str, list[list[int]]] = {}
    unknown: dict[str, None] = {}
    for name, questions in sections.items():
        known[name] = []
        for question in questions:
            rows = [space.row(word) for word in question]
            unknown |= {word: None for word, row in zip(question, rows, strict=True) if row is None}
            if None not in rows:
                known[name].append([row for row in rows if row is not None])
    every = np.array([rows for some in known.values() for rows in some], dtype=np.int64).reshape(-1, 4)
    if not len(every):
        raise PolysemeError("the model knows all four words of no question: is it of the same language?")
    answers = iter(_right(space, every))
    scores = {}
    for name, some in known.items():
        right = sum(next(answers) for _ in some)
        scores[name] = SectionScore(right, len(some), len(sections[name]) - len(some))
    return AnalogyScores(scores, list(unknown))


def _right(space: WordSpace, questions: np.ndarray) -> Sequence[bool]:
    """Whether each question (questions, 4) is answered as it should be."""
    found = space.answers(questions[:, :3])
    pairs = zip(found.tolist(), questions[:, 3].tolist(), strict=True)
    return [space.words[one].casefold() == space.words[two].casefold() for one, two in pairs]
