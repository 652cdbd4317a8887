"""Results of encoders: lists and small dataclasses that print as tables and render in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from polyseme.base.display import columns, html_table, short
from polyseme.metrics.perplexity import format_perplexity, perplexity

Item = TypeVar("Item")


class ResultTable(list[Item]):
    """A list whose items are the rows of a table."""

    header: ClassVar[tuple[str, ...]]
    caption = ""
    """One line above the table."""

    def row(self, item: Item) -> tuple[str, ...]:
        """Return the cells of an item."""
        raise NotImplementedError

    def __str__(self) -> str:
        rows = [self.header, *(tuple(short(cell, 60) for cell in self.row(item)) for item in self)]
        table = columns(rows, right=range(len(self.header) - 1))
        return f"{short(self.caption, 100)}\n{table}" if self.caption else table

    def _repr_html_(self) -> str:
        return html_table(self.header, [self.row(item) for item in self], caption=self.caption)


class ResultList(list[Item]):
    """A list of results that are shown one after another."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self)  # type: ignore[attr-defined]


class Substitute(NamedTuple):
    """A word that could replace another."""

    word: str
    log_prob: float
    """Log of the product of both directions' probabilities, normalised over the vocabulary."""

    @property
    def probability(self) -> float:
        return math.exp(self.log_prob)


class Substitutes(ResultTable[Substitute]):
    """The most probable words for a position of a sentence, best first."""

    header = ("probability", "word")

    def __init__(self, items: Iterable[Substitute], *, words: Sequence[str], position: int) -> None:
        super().__init__(items)
        self.words, self.position = list(words), position
        self.caption = " ".join(f"[{word}]" if place == position else word for place, word in enumerate(words))

    def row(self, item: Substitute) -> tuple[str, ...]:
        return f"{item.probability:.4%}", item.word

    def to_json(self) -> dict[str, Any]:
        found = [{"word": each.word, "probability": each.probability, "log_prob": each.log_prob} for each in self]
        return {"words": self.words, "position": self.position, "substitutes": found}


class Filling(NamedTuple):
    """A subword that could replace a mask."""

    subword: str
    """A word, or with `##` before it the end of one."""
    log_prob: float

    @property
    def probability(self) -> float:
        return math.exp(self.log_prob)


class Fillings(ResultTable[Filling]):
    """The most probable subwords for one mask, best first."""

    header = ("probability", "subword")

    def row(self, item: Filling) -> tuple[str, ...]:
        return f"{item.probability:.4%}", item.subword


class MaskFillings(ResultList[Fillings]):
    """The fillings of each mask of a text."""

    def __init__(self, items: Iterable[Fillings], *, text: str) -> None:
        super().__init__(items)
        self.text = text
        for number, each in enumerate(self, start=1):
            each.caption = f"[MASK] {number}" if len(self) > 1 else ""

    def to_json(self) -> dict[str, Any]:
        found = [
            [{"piece": each.subword, "probability": each.probability, "log_prob": each.log_prob} for each in fillings]
            for fillings in self
        ]
        return {"text": self.text, "fillings": found}


class Similar(NamedTuple):
    """A word, and its cosine similarity."""

    word: str
    cosine: float


class SimilarWords(ResultTable[Similar]):
    """Words by cosine similarity, most similar first."""

    header = ("cosine", "word")

    def __init__(self, items: Iterable[Similar], query: str | Sequence[str]) -> None:
        super().__init__(items)
        self.query = query
        """The word, or the three words of an analogy."""

    def row(self, item: Similar) -> tuple[str, ...]:
        return f"{item.cosine:.3f}", item.word

    def to_json(self) -> dict[str, Any]:
        query = {"word": self.query} if isinstance(self.query, str) else {"words": list(self.query)}
        return {**query, "similar": [each._asdict() for each in self]}


@dataclass(frozen=True)
class WordLogProbs:
    """Natural-log probabilities of a sentence's words."""

    words: list[str]
    forward: np.ndarray
    """(words + 1,): of each word given all to its left, then of the end of the sentence. Of a model that reads from right to
    left only: given all to its right, then of the begin."""
    backward: np.ndarray | None
    """(words + 1,): of each word given all to its right, then of the begin; None: the model reads from left to right."""
    known: np.ndarray
    """(words,): False where the word is outside the vocabulary, and its unknown token was scored."""

    @property
    def score(self) -> float:
        """Log-probability of the sentence: the mean of the directions."""
        forward = float(self.forward.sum())
        return forward if self.backward is None else (forward + float(self.backward.sum())) / 2

    @property
    def perplexity(self) -> float:
        """Perplexity of the sentence, by the mean of the directions."""
        return perplexity(self.score, len(self.forward))

    def to_json(self, *, words: bool = False) -> dict[str, Any]:
        """Plain values for JSON; `words`: those of each word, too."""
        backward = self.backward
        values: dict[str, Any] = {
            "forward": float(self.forward.sum()),
            "backward": None if backward is None else float(backward.sum()),
            "mean": self.score,
            "perplexity": self.perplexity,
        }
        if words:
            values |= {"words": self.words, "known": self.known.tolist()}
            values |= {"forward_words": self.forward[:-1].tolist(), "end": float(self.forward[-1])}
            if backward is not None:
                values |= {"backward_words": backward[:-1].tolist(), "begin": float(backward[-1])}
        return values

    def rows(self) -> list[tuple[str, ...]]:
        """A row of cells for each word and for the boundaries: word, log-probabilities, a note on unknown words."""
        sides = [self.forward] if self.backward is None else [self.forward, self.backward]
        notes = ["" if known else "not in the vocabulary" for known in self.known]
        rows = [
            (word, *(f"{side[place]:.3f}" for side in sides), note)
            for place, (word, note) in enumerate(zip(self.words, notes, strict=True))
        ]
        rows.append(("end of the sentence", f"{self.forward[-1]:.3f}", *("",) * len(sides)))
        if self.backward is not None:
            rows.append(("begin of the sentence", "", f"{self.backward[-1]:.3f}", ""))
        return rows

    @property
    def _header(self) -> tuple[str, ...]:
        return ("word", "log-probability", "") if self.backward is None else ("word", "forward", "backward", "")

    @property
    def _total(self) -> str:
        return f"log-probability {self.score:.3f}, perplexity {format_perplexity(self.perplexity)}"

    def __str__(self) -> str:
        rows = [tuple(short(cell, 40) for cell in row) for row in self.rows()]
        return f"{self._total}\n{columns([self._header, *rows], right=range(1, len(self._header) - 1))}"

    def _repr_html_(self) -> str:
        return html_table(self._header, self.rows(), caption=self._total)


class LogProbs(ResultList[WordLogProbs]):
    """The log-probabilities of several sentences."""
