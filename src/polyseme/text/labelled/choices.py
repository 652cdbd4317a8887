"""Questions with several answers to choose from, one JSON object a line (plain, gzip, xz or zstd).

{"question": "Who sat?", "choices": ["the cat", "the mat"], "answer": 0, "context": "The cat sat on the mat."}

`answer` is the place of the right choice, from 0, or its text; `context`, which comes before the question, may be missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.text.labelled.numbered_lines import numbered_lines

Text = str | list[str]
"""A string to be split, or words."""


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A question and its choices."""

    question: Text
    choices: tuple[Text, ...]
    answer: int | None = None
    """The place of the right one; None: not known."""
    context: Text | None = None
    """What is read before the question."""
    where: int | None = field(default=None, repr=False, compare=False)
    """The line of its file, for messages."""


def read_choices(path: str | Path) -> list[ChoiceQuestion]:
    """All questions of a file.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.jsonl")
    >>> _ = file.write_text('{"question": "Who sat?", "choices": ["cat", "mat"], "answer": "mat"}')
    >>> read_choices(file)[0].answer
    1
    """
    found = [_question(line, number, path) for number, line in numbered_lines(path) if line.strip()]
    if not found:
        raise FormatError(path, "holds no questions; expected a JSON object a line, with question, choices and answer")
    return found


def _question(line: str, number: int, path: str | Path) -> ChoiceQuestion:
    where = f"{path}:{number}"
    try:
        values = json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise FormatError(where, f"is no JSON ({what}); expected an object a line, with question, choices and answer") from None
    if not isinstance(values, dict):
        raise FormatError(where, f"is {type(values).__name__}; expected an object with question, choices and answer")
    question, choices, context = values.get("question"), values.get("choices"), values.get("context")
    if not isinstance(question, str):
        raise FormatError(where, f"has the question {question!r}; expected a text")
    if not isinstance(choices, list) or len(choices) < 2 or not all(isinstance(each, str) for each in choices):
        raise FormatError(where, f"has the choices {choices!r}; expected a list of two texts or more")
    if context is not None and not isinstance(context, str):
        raise FormatError(where, f"has the context {context!r}; expected a text, or none")
    return ChoiceQuestion(question, tuple(choices), _place(values.get("answer"), choices, where), context, number)


def _place(answer: Any, choices: list[str], where: str) -> int:
    """Which choice is right."""
    if isinstance(answer, str):
        if choices.count(answer) != 1:
            raise FormatError(
                where, f"has the answer {answer!r}, which is {choices.count(answer)} of its choices; expected one"
            )
        return choices.index(answer)
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(choices):
        what = f"expected the place of a choice, from 0 to {len(choices) - 1}, or its text"
        raise FormatError(where, f"has the answer {answer!r}; {what}")
    return answer
