"""Questions about paragraphs in SQuAD's JSON: v1.1 (Rajpurkar et al. 2016) and v2, where some have no answer.

SQuAD-style data of others (CMRC, DRCD, QAMR) is read too, including its errors: answers that are not at their `answer_start`.
Such an answer is searched for: the nearest occurrence within a hundred characters is used, or the only one of the paragraph;
quotes may differ in form. An answer that is not found has no span, but its text stays, because scores compare texts. A
`context` may be a list of paragraphs; an answer then names its `paragraph`, from 0.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, UsageError
from polyseme.base.files import wrap_os_errors
from polyseme.text.files.decompression import decompress
from polyseme.text.files.encodings import decode_whole
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.numbered_lines import are_strings, shown
from polyseme.text.words import normalise_quotes

NEAR = 100
"""An answer at most so many characters from its `answer_start` is taken as the one that is meant."""
ANSWER, NO_ANSWER = "answer", "no answer"


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """The position of an answer: characters [begin, end) of a paragraph."""

    paragraph: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class ReadingQuestion:
    """A question, the paragraphs that may answer it, and its answers if known.

    Texts are strings to be split, or words; in paragraphs of words, characters are counted with spaces between words.
    """

    question: str | list[str]
    paragraphs: tuple[str | list[str], ...]
    answers: tuple[str, ...] | None = None
    """All correct texts; empty: the paragraphs have no answer. None: unknown."""
    spans: tuple[AnswerSpan, ...] = ()
    """The spans of the answers, each once."""
    id: str | None = None
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file, if known."""

    def __post_init__(self) -> None:
        if not self.paragraphs:
            raise UsageError(f"the question {self.question!r} has no paragraph; give at least one, which may be empty")

    @property
    def text(self) -> str:
        """The question as a string."""
        return self.question if isinstance(self.question, str) else " ".join(self.question)

    @property
    def label(self) -> str | None:
        """Whether it has an answer; None: unknown."""
        return None if self.answers is None else ANSWER if self.answers else NO_ANSWER


@dataclass(frozen=True, slots=True)
class MisplacedAnswer:
    """An answer that is not where its file says."""

    where: str
    """The position in the file, such as data[0].paragraphs[2].qas[1]."""
    text: str


@dataclass(frozen=True, slots=True)
class SquadData:
    """The content of a file."""

    questions: list[ReadingQuestion]
    repaired: list[MisplacedAnswer]
    """Answers with a wrong position that were found elsewhere."""
    unplaced: list[MisplacedAnswer]
    """Answers that are not in their paragraphs: questions keep their texts, without a span."""
    answers: int
    """Number of answers of the file."""


def read_squad(path: str | Path, *, strict: bool = True) -> SquadData:
    """Read all questions of a file (plain or compressed); with `strict=False`, what cannot be read is skipped and counted.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.json")
    >>> qas = [{"question": "Who?", "answers": [{"text": "Ann", "answer_start": 3}]}]
    >>> _ = file.write_text(json.dumps({"data": [{"paragraphs": [{"context": "It is Ann.", "qas": qas}]}]}))
    >>> found = read_squad(file)
    >>> found.questions[0].spans, len(found.repaired)
    ((AnswerSpan(paragraph=0, begin=6, end=9),), 1)
    """
    found, bad = SquadData([], [], [], 0), _BadParts(path, strict=strict, unit="question")
    count = 0
    for where, context, entry in _entries(path, _parsed(path), bad):
        with bad.noting(where):
            question, answers = _question(path, where, context, entry, found)
            found.questions.append(question)
            count += answers
    bad.finish(len(found.questions))
    if not found.questions:
        raise FormatError(path, "has no questions; expected SQuAD's JSON, with questions under data, paragraphs, qas")
    return SquadData(found.questions, found.repaired, found.unplaced, count)


def _parsed(path: str | Path) -> Any:
    path = Path(path)
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        magic = file.read(8)
    data = b"".join(decompress(path, str(path), magic))
    try:
        return json.loads(decode_whole(data, str(path)))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{path}:{line}", f"is not UTF-8 (byte 0x{data[error.start]:02x}); convert the file") from None
    except json.JSONDecodeError as error:
        what = f"is not JSON ({error.msg} at column {error.colno}); expected one object in SQuAD's format, not JSON lines"
        raise FormatError(f"{path}:{error.lineno}", what) from None
    except RecursionError:
        raise FormatError(path, "is nested too deeply; expected SQuAD's JSON") from None


class _BadParts(BadRows):
    """Questions and paragraphs that cannot be read, by their position in the file: JSON has no lines."""

    @contextlib.contextmanager
    def noting(self, where: str) -> Iterator[None]:
        """Skip what raises a `FormatError` in this block, unless strict."""
        try:
            yield
        except FormatError as error:
            if self.strict:
                raise
            self.add(0, "that cannot be read", f"in {where}: {str(error).removeprefix(f'{self.path}: ')}")


def _entries(path: str | Path, content: Any, bad: _BadParts) -> Iterator[tuple[str, tuple[str, ...], dict[str, Any]]]:
    """Yield each question with its position in the file and its paragraphs."""
    for number, article in enumerate(_get(path, "the file", content, "data", list)):
        at = f"data[{number}]"
        paragraphs: list[Any] = []
        with bad.noting(at):
            paragraphs = _get(path, at, article, "paragraphs", list)
        for i, paragraph in enumerate(paragraphs):
            inside, texts, entries = f"{at}.paragraphs[{i}]", tuple[str, ...](), list[Any]()
            with bad.noting(inside):
                context = paragraph.get("context") if isinstance(paragraph, dict) else None
                several = are_strings(context) and context
                texts = tuple(several or [_get(path, inside, paragraph, "context", str)])
                entries = _get(path, inside, paragraph, "qas", list)
            for which, entry in enumerate(entries):
                yield f"{inside}.qas[{which}]", texts, entry


def _get(path: str | Path, where: str, value: Any, key: str, kind: type) -> Any:
    """Return a value of an object after checking its type."""
    names = {list: "a list", str: "a string", int: "a whole number"}
    if not isinstance(value, dict):
        raise FormatError(path, f"{where} is {shown(value)}; expected an object {{...}}")
    if key not in value:
        keys = ", ".join(map(repr, value)) or "nothing"
        raise FormatError(path, f"{where} has no {key!r}, only {keys}; SQuAD's format needs it")
    part = value[key]
    if not isinstance(part, kind) or isinstance(part, bool):
        raise FormatError(path, f"{where} has {shown(part)} for {key!r}; expected {names[kind]}")
    return part


def _question(
    path: str | Path, where: str, context: tuple[str, ...], entry: Any, found: SquadData
) -> tuple[ReadingQuestion, int]:
    """Return a question and the number of its answers; misplaced ones are added to `found`."""
    text = _get(path, where, entry, "question", str)
    name = str(entry["id"]) if "id" in entry else None
    impossible = bool(entry.get("is_impossible", False))
    if "answers" not in entry:
        return ReadingQuestion(text, context, () if impossible else None, (), name), 0
    given = _get(path, where, entry, "answers", list)
    if impossible and given:
        raise FormatError(path, f"{where} has is_impossible true and {len(given)} answers; remove one of the two")
    answers: list[str] = []
    spans: list[AnswerSpan] = []
    for number, answer in enumerate(given):
        at = f"{where}.answers[{number}]"
        wanted, start = _get(path, at, answer, "text", str), _get(path, at, answer, "answer_start", int)
        paragraph = _get(path, at, answer, "paragraph", int) if "paragraph" in answer else 0
        if not 0 <= paragraph < len(context):
            raise FormatError(path, f"{at} has 'paragraph' {paragraph}; allowed: from 0 to {len(context) - 1}")
        answers.append(wanted)
        span = locate(context[paragraph], wanted, start)
        if span is None or start < 0 or not context[paragraph].startswith(wanted, start):
            (found.unplaced if span is None else found.repaired).append(MisplacedAnswer(at, wanted))
        if span is not None:
            spans.append(AnswerSpan(paragraph, *span))
    return ReadingQuestion(text, context, tuple(answers), tuple(dict.fromkeys(spans)), name), len(given)


def locate(paragraph: str, answer: str, start: int) -> tuple[int, int] | None:
    """Return the characters [begin, end) of an answer that should begin at `start`; None: not found.

    Spaces around the answer are ignored. It is searched for as it is, then with straight quotes.

    >>> locate("I said “no”, no more", '"no"', 2), locate("no, no", "yes", 0)
    ((7, 11), None)
    """
    given = start >= 0  # -1 means that annotators wrote the answer themselves
    start += len(answer) - len(answer.lstrip())
    answer = answer.strip()
    if not answer:
        return None
    for text, wanted in ((paragraph, answer), (normalise_quotes(paragraph), normalise_quotes(answer))):
        if given and text.startswith(wanted, start):
            return start, start + len(wanted)
        positions = list(_occurrences(text, wanted))
        nearest = min(positions, key=lambda position: abs(position - start), default=0)
        if len(positions) == 1 or (positions and given and abs(nearest - start) <= NEAR):
            return nearest, nearest + len(wanted)
    return None


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    position = text.find(wanted)
    while position >= 0:
        yield position
        position = text.find(wanted, position + 1)
