"""The names of a table's columns: those that are well known, those that the user gives, and whether a row has names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from polyseme.base.display import count
from polyseme.base.errors import UsageError, arg

Column = str | int | None
"""A name, or a number from 0 (or from -1 backwards), which may be written as a string."""
PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("sentence_a", "sentence_b"), ("text_a", "text_b")),
    *(("text1", "text2"), ("question1", "question2"), ("question", "sentence"), ("#1 string", "#2 string")),
    *(("句子1", "句子2"), ("文本1", "文本2")),
)
TEXTS = (
    "sentence",
    "text",
    "text_a",
    "phrase",
    "review",
    "question",
    "content",
    "文本",
    "内容",
    "评论",
    "评论内容",
    "正文",
    "句子",
)
SCORES = ("similarity", "score", "relatedness_score")
LABELS = (
    *("gold_label", "label", "entailment_judgment", "quality", "is_duplicate", "class", *SCORES),
    *("sentiment", "category", "标签", "类别", "情感"),
)
"""Well-known names in headers, in lower case; of several labels the first is used, for single texts scores last."""
LABEL_HINTS = {"queue", "team", "department", "intent", "队列", "部门", "意图"}
"""Names in lower case that decide between columns that may be the label by their content, and make no header."""
TEXT_HINT = re.compile(r"(?:^|[\W_])(?:text|content|review|comment|description|message)$|(?:文本|内容|评论|正文|描述)$")
"""How names end, in lower case, that decide where no column is much longer than all others: 工单内容."""
_TOPICS = {"评论", "情感"}
"""Names that are topics of Chinese news too: beside other cells they make a header only with another well-known name."""
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
QUOTED = re.compile(r'"(?:[^"]|"")*"')
MAX_NAME = 40  # characters of a name or a label
NAMES_SHOWN = 20  # of columns in a message


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller says of the columns."""

    text: Column = None
    second: Column = None
    label: Column = None
    labelled: bool = True
    header: bool | None = None
    strict: bool = True
    pairs: bool | None = None
    """Whether a second text is wanted where columns are guessed; None: guess none."""

    @property
    def given(self) -> dict[str, int | str]:
        """The columns that are named, by role."""
        roles = {"text": column_of(self.text), "second": column_of(self.second), "label": column_of(self.label)}
        return {role: column for role, column in roles.items() if column is not None}


def is_header(cells: Sequence[str], given: Iterable[Column] = ()) -> bool:
    """Whether columns are given by name, or all cells could be names and one is well known."""
    if any(isinstance(column, str) for column in given):
        return True
    names = [cell.strip().lower() for cell in cells]
    if not may_be_names(names):
        return False
    known = {*chain(*PAIRS), *TEXTS, *LABELS}.intersection(names)
    return len(known) > 1 or bool(known - _TOPICS) or (bool(known) and len(names) == 1)


def may_be_names(cells: Sequence[str]) -> bool:
    """Whether cells are different and no numbers; beside two names others may be empty, as spreadsheets and pandas write."""
    names = [cell for cell in cells if cell]
    if len(names) < min(len(cells), 2):
        return False
    return len(set(names)) == len(names) and not any(NUMBER.fullmatch(name) for name in names)


def column_of(name: Column) -> Column:
    """Return a column as a number if it is one, else as a name.

    >>> column_of("-1"), column_of("label")
    (-1, 'label')
    """
    return int(name) if isinstance(name, str) and name.removeprefix("-").isdecimal() else name


def column_number(path: str | Path, role: str, column: str | int, header: Sequence[str] | None, width: int) -> int:
    """Return the number of a requested column."""
    if isinstance(column, int):
        if not -width <= column < width:
            what = f"{path} has {count(width, 'column')}, so {arg(role, column)} does not exist"
            raise UsageError(f"{what}; give a number from 0 to {width - 1}")
        return column % width
    if header is None:
        advice = f"if it has one, drop {arg('header', False)}"
        raise UsageError(f"{path} has no header, so {arg(role, column)} must be a number from 0; {advice}")
    cells = [cell.strip() for cell in header]
    for names, name in ((cells, column), ([cell.lower() for cell in cells], column.lower())):
        if names.count(name) == 1:
            return names.index(name)
    how_many = "no column" if column not in cells else "several columns"
    given = listed(repr(cell[:20]) for cell in cells)
    advice = "give a name, or a number from 0 if these are not names"
    raise UsageError(f"{path} has {how_many} {column!r} for {arg(role)} among {given}; {advice}")


def listed(names: Iterable[str]) -> str:
    """Return names of columns for a message: a text may have been taken for a header.

    >>> listed(["text", "a long column " * 9]), listed(map(str, range(30)))[-15:]
    ('text, a long column a long column a long colum...', '18, 19, 10 more')
    """
    found = [name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}..." for name in names]
    return ", ".join([*found[:NAMES_SHOWN], *([f"{len(found) - NAMES_SHOWN} more"] if len(found) > NAMES_SHOWN else [])])
