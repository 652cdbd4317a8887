"""Analogies: Athens is to Greece as Baghdad is to ... Google's set (Mikolov et al. 2013) and similar ones, by 3CosAdd.

A question with a word that the model does not know is skipped and counted. A word that is missing is looked up in any case,
and an answer is right if it is the expected word in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.analysis.words import WordSpace
from polyseme.base.display import columns, count, html_table
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.text.labelled.numbered_lines import numbered_lines

Question = tuple[str, str, str, str]
UNNAMED = "questions"
"""The section of questions before any section line."""


@dataclass(frozen=True)
class SectionScore:
    """The score of a section."""

    right: int = 0
    asked: int = 0
    """Questions whose four words the model knows."""
    skipped: int = 0

    @property
    def accuracy(self) -> float | None:
        """Of those asked; None if there were none."""
        return self.right / self.asked if self.asked else None

    def __add__(self, other: SectionScore) -> SectionScore:
        return SectionScore(self.right + other.right, self.asked + other.asked, self.skipped + other.skipped)

    def to_json(self) -> dict[str, Any]:
        return {"accuracy": self.accuracy, "right": self.right, "asked": self.asked, "left_out": self.skipped}


@dataclass(frozen=True)
class AnalogyScores:
    """The score of each section, and the words that the model does not know."""

    sections: dict[str, SectionScore]
    unknown: list[str]

    @property
    def total(self) -> SectionScore:
        return sum(self.sections.values(), SectionScore())

    def to_json(self) -> dict[str, Any]:
        sections = {name: score.to_json() for name, score in self.sections.items()}
        return {"all": self.total.to_json(), "sections": sections, "unknown_words": len(self.unknown)}

    def _cells(self) -> list[list[str]]:
        scores = {**self.sections, "all": self.total}
        return [
            [
                name,
                "" if each.accuracy is None else f"{each.accuracy:.4f}",
                *(f"{n:,}" for n in (each.right, each.asked, each.skipped)),
            ]
            for name, each in scores.items()
        ]

    def __str__(self) -> str:
        header = ["", "accuracy", "right", "asked", "skipped"]
        table = columns([header, *self._cells()], indent=0, right=range(1, 5), gap=4)
        examples = ", ".join(self.unknown[:5])
        return table + (f"\n\n{count(len(self.unknown), 'word')} unknown, such as {examples}" if self.unknown else "")

    def _repr_html_(self) -> str:
        return html_table(["section", "accuracy", "right", "asked", "skipped"], self._cells())


def read_analogies(path: str | Path) -> dict[str, list[Question]]:
    """Read questions by section: lines of four words separated by spaces or tabs, and before each section `: its name`."""
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
        raise FormatError(path, "has no questions; expected four words per line")
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
    rows_of_all = np.array([rows for some in known.values() for rows in some], dtype=np.int64).reshape(-1, 4)
    if not len(rows_of_all):
        raise PolysemeError("the model does not know all four words of any question: is it of the same language?")
    answers = iter(_right(space, rows_of_all))
    scores = {}
    for name, some in known.items():
        right = sum(next(answers) for _ in some)
        scores[name] = SectionScore(right, len(some), len(sections[name]) - len(some))
    return AnalogyScores(scores, list(unknown))


def _right(space: WordSpace, questions: np.ndarray) -> Sequence[bool]:
    """Whether each question (questions, 4) is answered correctly."""
    answers = space.answers(questions[:, :3])
    pairs = zip(answers.tolist(), questions[:, 3].tolist(), strict=True)
    return [space.words[one].casefold() == space.words[two].casefold() for one, two in pairs]
