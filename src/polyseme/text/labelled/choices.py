"""Multiple-choice questions, one JSON object per line (plain or compressed).

{"question": "Who sat?", "choices": ["the cat", "the mat"], "answer": 0, "context": "The cat sat on the mat."}

`answer` is the number of the right choice, from 0, or its text. `context`, which is read before the question, is optional.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.text.labelled.bad_rows import BadRows
from polyseme.text.labelled.numbered_lines import are_strings, json_object, numbered_lines

Text = str | list[str]
"""A string to be split, or words."""
_EXPECTED = "one JSON object per line, with question, choices and answer"


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A question and its choices."""

    question: Text
    choices: tuple[Text, ...]
    answer: int | None = None
    """The number of the right choice; None: unknown."""
    context: Text | None = None
    """What is read before the question."""
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file, for messages."""


def read_choices(path: str | Path, *, strict: bool = True) -> list[ChoiceQuestion]:
    """Read all questions of a file; with `strict=False`, bad ones are skipped and counted.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = file.write_text('{"question": "Who sat?", "choices": ["cat", "mat"], "answer": "mat"}')
    >>> read_choices(file)[0].answer
    1
    """
    bad = BadRows(path, strict=strict, unit="question")
    lines = [(number, line) for number, line in numbered_lines(path) if line.strip()]
    questions = list(bad.read_each(lines, lambda number, line: _question(line, number, path)))
    bad.finish(len(questions))
    if not questions:
        raise FormatError(path, f"has no questions; expected {_EXPECTED}")
    return questions


def _question(line: str, number: int, path: str | Path) -> ChoiceQuestion:
    where = f"{path}:{number}"
    values = json_object(where, line, _EXPECTED)
    question, choices, context = values.get("question"), values.get("choices"), values.get("context")
    if not isinstance(question, str):
        raise FormatError(where, f"has the question {question!r}; expected a string")
    if not are_strings(choices) or len(choices) < 2:
        raise FormatError(where, f"has the choices {choices!r}; expected a list of two or more strings")
    if context is not None and not isinstance(context, str):
        raise FormatError(where, f"has the context {context!r}; expected a string or none")
    return ChoiceQuestion(question, tuple(choices), _answer(values.get("answer"), choices, where), context, number)


def _answer(answer: Any, choices: list[str], where: str) -> int:
    """Return the number of the right choice."""
    if isinstance(answer, str):
        if choices.count(answer) != 1:
            raise FormatError(where, f"has the answer {answer!r}, which equals {choices.count(answer)} choices; expected one")
        return choices.index(answer)
    if type(answer) is not int or not 0 <= answer < len(choices):
        expected = f"expected the number of a choice, from 0 to {len(choices) - 1}, or its text"
        raise FormatError(where, f"has the answer {answer!r}; {expected}")
    return answer
