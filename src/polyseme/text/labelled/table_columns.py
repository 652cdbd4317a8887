"""Which columns of a table hold the texts and the label, and whether its first row names them.

Columns are those that the user names, or those with well-known names, or (unless `strict`) those whose content makes it clear:
the text is much longer than all else, and the label has few values. Without a header, one of several such columns is the label
if only its values do not come in blocks, as sources of the texts do (CoLA, the STS benchmark), or only its values are those of
well-known labels. Numbers with decimals are the label of single texts only if nothing else can be. A guess is reported, and so
are columns that are not used. In doubt an error lists the columns.
"""

from __future__ import annotations

import functools
import itertools
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from polyseme.base.errors import UsageError, arg

_log = logging.getLogger(__name__)
Column = str | int | None
"""A name, or a number from 0 (or from -1 backwards), which may be written as a string."""
Record = tuple[int, Sequence[object]]
"""The first line of a row and its cells; a cell of JSON lines may be any value, all others are strings."""
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
_LABEL_HINTS = {"queue", "team", "department", "intent", "队列", "部门", "意图"}
"""Names in lower case that decide between columns that may be the label by their content, and make no header."""
_TEXT_HINT = re.compile(r"(?:^|[\W_])(?:text|content|review|comment|description|message)$|(?:文本|内容|评论|正文|描述)$")
"""How names end, in lower case, that decide where no column is much longer than all others: 工单内容."""
_TOPICS = {"评论", "情感"}
"""Names that are topics of Chinese news too: beside other cells they make a header only with another well-known name."""

NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
QUOTED = re.compile(r'"(?:[^"]|"")*"')
_MISSING = frozenset({"NaN", "nan", "-nan", "#N/A", "#NA", "N/A", "n/a", "<NA>", "NULL", "null", r"\N"})
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{2}")
_CLASSES = (
    *({"0", "1"}, {"-1", "1"}, {"true", "false"}, {"yes", "no"}, {"positive", "negative", "neutral"}, {"pos", "neg"}),
    *({"entailment", "neutral", "contradiction"}, {"entailment", "not_entailment"}, {"spam", "ham"}),
)
"""Values of well-known labels, in lower case."""
_FILLED = 0.9  # of the rows have a label
_MIN_ROWS = 4  # rows from which columns are guessed
_MOST_REPEATED = 0.1  # of the rows repeat a header
_MAX_NAME = 40  # characters of a name or a label
_UNUSED_SHOWN = 5  # columns that are not used
_NAMES_SHOWN = 20  # of columns in a message
_LONGER = 2.0  # times as long as other columns is a text


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


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns to read."""

    first: int
    second: int | None
    label: int | None
    names: list[str]
    """The names of all columns, for messages."""
    begin: int
    """The line of the first record."""
    header: bool
    """Whether the first record names the columns."""
    has_keys: bool = False
    """Whether the names are keys of the format (JSON lines), and there is no row of names."""
    guessed: bool = False
    """Whether a column, or that there is a header, is a guess by content."""
    by_content: tuple[str, ...] = ()
    """The roles whose columns are a guess."""
    unused: tuple[str, ...] = ()
    """The names of columns with content that are not read, if some columns were not given."""
    cells: tuple[str, ...] = ()
    """The first record, header or not."""

    def options(self) -> dict[str, str | bool]:
        """The columns as settings of a task: by name with a header, else by number."""
        numbers = {"text": self.first, "second": self.second, "label": self.label}
        found = {role: number for role, number in numbers.items() if number is not None}
        return {
            **{role: self.names[number] if self.header else str(number) for role, number in found.items()},
            "header": self.header,
        }


def plain(cell: object) -> str:
    """Return a cell as a string; empty for null and NaN, in JSON and as programs write them (`\\N`: MySQL).

    >>> plain(" a "), plain(None), plain(float("nan")), plain("NaN"), plain(3)
    (' a ', '', '', '', '3')
    """
    if isinstance(cell, str):
        return "" if cell in _MISSING else cell
    return "" if cell is None or cell != cell else json.dumps(cell)


def with_decimal_point(cell: str) -> str:
    """Return a number whose decimals stand behind a comma, as spreadsheets of many countries write them, with a point.

    >>> with_decimal_point("3,5"), with_decimal_point("3.5"), with_decimal_point("1,2,3")
    ('3.5', '3.5', '1,2,3')
    """
    return cell.replace(",", ".") if _DECIMAL.fullmatch(cell.strip()) else cell


def choose_columns(path: str | Path, records: Sequence[Record], asked: Request, *, named: bool) -> Layout:
    """Return the columns of a table that begins with these records; `named`: its format has names, in the first record."""
    (line, opening), *others = records
    cells = [plain(cell) for cell in opening]
    if asked.text is None and asked.second is not None:
        raise UsageError(f"{path}: {arg('second', asked.second)} needs {arg('text')}; give both or neither")
    if asked.label is not None and not asked.labelled:
        raise UsageError(f"{path}: {arg('label', asked.label)} and labelled=False exclude each other; give one of them")
    header = named or (is_header(cells, asked.given.values()) if asked.header is None else asked.header)
    content = _Content(cells, [row for _, given in others if (row := _fitted(given, cells)) is not None])
    header_by_content = not header and asked.header is None and not asked.strict and content.has_header()
    header = header or header_by_content
    if header:
        content.rows = [row for row in content.rows if row != cells]  # joined files repeat it
    names = cells if header else [str(number) for number in range(len(cells))]
    if not header:
        content.rows.append(cells)
    found = {
        role: column_number(path, role, given, cells if header else None, len(names)) for role, given in asked.given.items()
    }
    roles = [role for role in ("text", "label") if role not in found and (role == "text" or asked.labelled)]
    if roles and header:
        found |= _well_known(names, roles, content, single=not asked.pairs and "second" not in found)
        if "label" in roles and not asked.strict and content.has_better_label(found, asked):
            del found["label"]
    missing = [role for role in roles if role not in found]
    if missing and not asked.strict:
        found |= content.guess(found, asked, header=header)
    by_content = tuple(role for role in missing if role in found)
    missing = [role for role in missing if role not in found]
    if missing:
        if not others and not named:
            raise UsageError(f"{path} has no rows but its first, {_listed(map(repr, cells))}: it needs a row for each text")
        candidates = [] if asked.strict else [names[number] for number in content.labels(found, asked)]
        if "label" in missing and not candidates and (single := content.single_class(found)) is not None:
            raise UsageError(_one_class(path, names, single, content, header=header))
        if "label" in missing and not candidates and content.has_no_label(found, asked):
            known = found.values() if "text" in asked.given else ()
            raise UsageError(_no_label(path, cells, known, content, header=header))
        known_label = names[found["label"]] if "label" in found and "label" not in asked.given else None
        raise UsageError(_unknown(path, line, cells, missing, candidates, header=header, label=known_label))
    if len(set(found.values())) < len(found):
        given = ", ".join(names[column] for column in found.values())
        raise UsageError(f"{path}: {arg('text')}, {arg('second')} and {arg('label')} must be different columns, not {given}")
    unused = [number for number in range(len(names)) if number not in found.values() and not content.is_empty(number)]
    return Layout(
        found["text"],
        found.get("second"),
        found.get("label"),
        names,
        line,
        header,
        has_keys=named,
        guessed=header_by_content or bool(by_content),
        by_content=by_content,
        unused=tuple(names[number].strip() or str(number) for number in unused) if roles else (),
        cells=tuple(cells),
    )


def _fitted(given: Sequence[object], header: list[str]) -> list[str] | None:
    """Return a row with as many cells as the first, but for empty ones at the end of either; None if it has others."""
    row, width = [plain(cell) for cell in given], len(header)
    while len(row) > width and not row[-1].strip():
        del row[-1]
    named = next((number for number in range(width, 0, -1) if header[number - 1].strip()), 0)
    return [*row, *[""] * (width - len(row))] if named <= len(row) <= width else None


def report_columns(path: str | Path, layout: Layout) -> None:
    """Say which columns are read, if they are guessed, or if others are not used."""
    numbers = {"text": layout.first, "second": layout.second, "label": layout.label}
    roles = [role for role, number in numbers.items() if number is not None]
    all_guessed = {*layout.by_content, "second"} >= set(roles)
    note = {role: " (by its content)" for role in layout.by_content if not all_guessed}
    shown = ", ".join(f"{role}: {layout.names[numbers[role] or 0]!r}{note.get(role, '')}" for role in roles)
    unused = f"not used: {', '.join(layout.unused[:_UNUSED_SHOWN])}" if layout.unused else ""
    if len(layout.unused) > _UNUSED_SHOWN:
        unused += f" and {len(layout.unused) - _UNUSED_SHOWN} more"
    if layout.guessed:
        begin = "" if layout.has_keys else "the first row names the columns; " if layout.header else "no header; "
        kind = "keys" if layout.has_keys else "columns"
        how = f"{kind} by their content:" if all_guessed else kind
        settings = ("text", "label") if layout.has_keys else ("text", "label", "header")
        advice = f"if that is wrong, give {', '.join(map(arg, settings))}"
        warn_once(f"{path}: {begin}{how} {shown} ({'; '.join(filter(None, (unused, advice)))})")
    elif unused:
        warn_once(f"{path}: columns {shown} ({unused})")


@functools.lru_cache(maxsize=256)
def warn_once(message: str) -> None:
    """Warn once of a file that is read several times."""
    _log.warning("%s", message)


# ---- names


def is_header(cells: Sequence[str], given: Iterable[Column] = ()) -> bool:
    """Whether columns are given by name, or all cells could be names and one is well known."""
    if any(isinstance(column, str) for column in given):
        return True
    names = [cell.strip().lower() for cell in cells]
    if not _may_be_names(names):
        return False
    known = {*chain(*PAIRS), *TEXTS, *LABELS}.intersection(names)
    return len(known) > 1 or bool(known - _TOPICS) or (bool(known) and len(names) == 1)


def _may_be_names(cells: Sequence[str]) -> bool:
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
            what = f"{path} has {width} columns, so {arg(role, column)} does not exist"
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
    given = _listed(repr(cell[:20]) for cell in cells)
    advice = "give a name, or a number from 0 if these are not names"
    raise UsageError(f"{path} has {how_many} {column!r} for {arg(role)} among {given}; {advice}")


def _well_known(names: Sequence[str], roles: Sequence[str], content: _Content, *, single: bool) -> dict[str, int]:
    """Return the columns of some roles that have well-known names, where that is clear; `single`: not of pairs."""
    small = [name.strip().lower() for name in names]
    known: dict[str, int] = {}
    if "text" in roles:
        pairs = [(small.index(one), small.index(two)) for one, two in PAIRS if one in small and two in small]
        texts = [small.index(name) for name in TEXTS if name in small]
        if len(pairs) == 1:
            known |= {"text": pairs[0][0], "second": pairs[0][1]}
        elif not pairs and len(texts) == 1:
            known["text"] = texts[0]
    if "label" in roles:
        labels = [name for name in LABELS if name in small]
        if single and "second" not in known:
            labels.sort(key=lambda name: (content.has_decimals(small.index(name)), name in SCORES))
        known |= {"label": small.index(labels[0])} if labels else {}
    return known


def _listed(names: Iterable[str]) -> str:
    """Return names of columns for a message: a text may have been taken for a header.

    >>> _listed(["text", "a long column " * 9]), _listed(map(str, range(30)))[-15:]
    ('text, a long column a long column a long colum...', '18, 19, 10 more')
    """
    found = [name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}..." for name in names]
    return ", ".join([*found[:_NAMES_SHOWN], *([f"{len(found) - _NAMES_SHOWN} more"] if len(found) > _NAMES_SHOWN else [])])


def _one_class(path: str | Path, names: Sequence[str], single: int, content: _Content, *, header: bool) -> str:
    """Return an error: the only column that may be the label has one value."""
    column = f"column {names[single]!r}" if header else f"column {single} (from 0)"
    rows = f"its first {len(content.rows)} rows"
    what = f"{path} has no column of two classes: {column} has {content.value(single)!r} in {rows}"
    advice = f"if others come later, or another column is the label, give {arg('label')} with one of: {_listed(names)}"
    return f"{what}. A classifier needs two labels or more; {advice}"


def _no_label(path: str | Path, cells: list[str], given: Collection[int], content: _Content, *, header: bool) -> str:
    """Return an error: no column can be the label; it says what each has that is not given, and which could be the text."""
    free = [number for number in range(len(cells)) if number not in given and not content.is_empty(number)]
    texts = [number for number in content.by_length() if number in free and content.may_be_text(number)]
    shown = []
    for number in free[:_NAMES_SHOWN]:
        name = repr(cells[number][:_MAX_NAME]) if header else f"column {number} ({cells[number][:20]!r})"
        could = f" and could be the text ({arg('text', cells[number] if header else number)})" if number in texts[:1] else ""
        shown.append(f"{name} has {content.kind(number)}{could}")
    advice = f"add a column of labels, or name the label's column with {arg('label')}; texts without labels are for `predict`"
    return f"{path} has no column that looks like a label: {', '.join(shown)}. A classifier learns from labels: {advice}"


def _unknown(
    path: str | Path,
    line: int,
    cells: list[str],
    missing: Sequence[str],
    candidates: Sequence[str],
    *,
    header: bool,
    label: str | None = None,
) -> str:
    """Return an error: which columns are not known, and how to name them.

    `candidates`: columns that may be the label; `label`: the one that is recognised.
    """
    if header:
        small = {cell.strip().lower() for cell in cells}
        several = "text" in missing and not small.isdisjoint({*chain(*PAIRS), *TEXTS})
        problem = (
            "several columns that may be the text" if several else f"no column with a well-known name for the {missing[0]}"
        )
        role = f"{arg('text')} (for pairs {arg('text')} and {arg('second')})" if missing[0] == "text" else arg("label")
        if missing[0] == "label" and len(candidates) > 1:
            return f"{path} has {problem}; give {role} with one of: {_listed(candidates)} (by their content, these may be it)"
        others = [cell for cell in cells if cell != label]
        known = "" if label is None else f" (the label is read from {label!r})"
        return f"{path} has {problem}{known}; give {role} with one of: {_listed(others)}"
    row = _listed(f"{number}: {cell[:20]!r}" for number, cell in enumerate(cells))
    columns = f"{arg('text', 0)} {arg('label', 1)}"
    if len(cells) > 2:
        columns += f", for pairs {arg('text', 0)} {arg('second', 1)} {arg('label', 2)}"
    quotes = f"; for quoted cells add {arg('format', 'csv')}" if any(map(QUOTED.fullmatch, cells)) else ""
    return (
        f"{path}:{line}: is not a known header ({row}); give columns by number, or by name if it is a header: {columns}{quotes}"
    )


# ---- content


class _Content:
    """The first rows of a table, by columns."""

    def __init__(self, first: list[str], rows: list[list[str]]) -> None:
        self.first, self.rows = first, rows

    def has_header(self) -> bool:
        """Whether the first row has names: its cells occur nowhere else in columns of one or few values, numbers, or dates."""
        if len(self.rows) < _MIN_ROWS or not _may_be_names([cell.strip() for cell in self.first]):
            return False
        if any(len(cell) > _MAX_NAME for cell in self.first):
            return False
        others = _Content(self.first, [row for row in self.rows if row != self.first])
        repeated = len(self.rows) - len(others.rows)  # by joined files
        if repeated > _MOST_REPEATED * len(self.rows):
            return False
        named = [number for number, cell in enumerate(self.first) if cell.strip()]
        telling = [n for n in named if others._is_label(n) or others._is_number(n) or (not repeated and self.is_constant(n))]
        telling += [number for number in named if others._is_date(number) and not _DATE.match(self.first[number].strip())]
        return bool(telling) and all(self.first[number] not in others._column(number) for number in telling)

    def guess(self, found: dict[str, int], asked: Request, *, header: bool) -> dict[str, int]:
        """Return the columns that are not found yet, where the content makes them clear."""
        if len(self.rows) < _MIN_ROWS:
            return {}
        free = [number for number in range(len(self.first)) if number not in found.values()]
        count = 2 if asked.pairs else 1
        texts = [] if "text" in found else self._longest(free, count)
        guessed: dict[str, int] = {}
        if asked.labelled and "label" not in found:
            labels = self.labels({**found, **dict(zip(("text", "second"), texts, strict=False))}, asked)
            if len(labels) > 1:
                labels = (self._named(labels, _LABEL_HINTS.__contains__) or labels) if header else self._clearest(labels)
            if len(labels) == 1:
                guessed["label"] = labels[0]
        if "text" not in found:
            free = [number for number in free if number not in guessed.values()]
            texts = self._longest(free, count)
            if header and not texts and count == 1:
                could = [number for number in free if self.may_be_text(number) and not self._is_label(number)]
                texts = self._named(could, _TEXT_HINT.search)
            guessed |= dict(zip(("text", "second"), texts, strict=False))
        return guessed

    def labels(self, found: dict[str, int], asked: Request) -> list[int]:
        """Return the columns that may be the label; numbers with decimals only where nothing else may be."""
        free = [number for number in range(len(self.first)) if number not in found.values()]
        labels = [number for number in free if self._is_label(number)]
        if not labels and asked.pairs:  # scores have many values
            return [number for number in free if self._is_number(number) and self._is_varied(number)]
        return labels if asked.pairs else [number for number in labels if not self.has_decimals(number)] or labels

    def has_better_label(self, found: dict[str, int], asked: Request) -> bool:
        """Whether the label of a single text is a number with decimals, and another column may be the label."""
        if asked.pairs or "second" in found or "label" not in found or not self.has_decimals(found["label"]):
            return False
        return len(self.rows) >= _MIN_ROWS and not all(map(self.has_decimals, self.labels(found, asked)))

    def has_no_label(self, found: Mapping[str, int], asked: Request) -> bool:
        """Whether each free column has dates, or long values that are nearly all different: no label of single texts."""
        if asked.pairs or len(self.rows) < _MIN_ROWS:
            return False
        free = [number for number in range(len(self.first)) if number not in found.values() and not self.is_empty(number)]
        return all(self._is_date(number) or self._is_long(number) for number in free)

    def may_be_text(self, number: int) -> bool:
        """Whether a column has content that is neither dates nor numbers."""
        return not (self.is_empty(number) or self._is_date(number) or self._is_number(number))

    def kind(self, number: int) -> str:
        """Return what a column has, where it is no label."""
        return "dates" if self._is_date(number) else "long values that are nearly all different"

    def by_length(self) -> list[int]:
        """Return the columns, that with the longest values first."""
        return sorted(range(len(self.first)), key=self._length, reverse=True)

    def has_decimals(self, number: int) -> bool:
        """Whether a column has numbers that are not all whole."""
        return self._is_number(number) and any(
            not float(with_decimal_point(cell)).is_integer() for cell in self._column(number) if cell
        )

    def single_class(self, found: dict[str, int]) -> int | None:
        """Return the only free column in which all rows have the same short value; None if there is none, or several."""
        free = [number for number in range(len(self.first)) if number not in found.values()]
        alike = [number for number in free if len(set(self._column(number))) == 1 and 0 < len(self.value(number)) <= _MAX_NAME]
        return alike[0] if len(self.rows) > 1 and len(alike) == 1 else None

    def value(self, number: int) -> str:
        """Return the first value of a column."""
        return self._column(number)[0]

    def is_constant(self, number: int) -> bool:
        """Whether all rows have the same value in a column."""
        return len(set(self._column(number))) == 1

    def is_empty(self, number: int) -> bool:
        """Whether a column has no content."""
        return not any(self._column(number))

    def _clearest(self, columns: Sequence[int]) -> list[int]:
        """Return the columns among several that are most like labels."""
        scattered = [number for number in columns if not self._is_in_blocks(number)]
        columns = scattered or columns
        values = {number: {cell.lower() for cell in self._column(number) if cell} for number in columns}
        known = [number for number in columns if any(values[number] <= each for each in _CLASSES)]
        return known if len(columns) > 1 and known else list(columns)

    def _named(self, columns: Sequence[int], is_hint: Callable[[str], object]) -> list[int]:
        """Return the only column whose name is a hint; none where there are several, or none."""
        named = [number for number in columns if is_hint(self.first[number].strip().lower())]
        return named if len(named) == 1 else []

    def _is_in_blocks(self, number: int) -> bool:
        """Whether equal values of a column follow each other, such as the source of each text."""
        cells = self._column(number)
        blocks = 1 + sum(one != other for one, other in itertools.pairwise(cells))
        return blocks <= 2 * len(set(cells)) and len(cells) > 4 * blocks

    def _longest(self, columns: Sequence[int], count: int) -> list[int]:
        """Return the `count` columns that are much longer than all others, in their order; none where there are none."""
        ordered = sorted(columns, key=self._length, reverse=True)
        shortest = self._length(ordered[count - 1]) if len(ordered) >= count else 0.0
        clear = all(shortest >= _LONGER * self._length(number) for number in ordered[count:])
        return sorted(ordered[:count]) if shortest and clear else []

    def _column(self, number: int) -> list[str]:
        return [row[number].strip() for row in self.rows]

    def _length(self, number: int) -> float:
        return sum(map(len, self._column(number))) / max(len(self.rows), 1)

    def _is_label(self, number: int) -> bool:
        """Whether a column has few values, at least two, each short and most of them repeated."""
        cells = [cell for cell in self._column(number) if cell]
        values = set(cells)
        if self._is_date(number):
            return False
        if len(cells) < _FILLED * len(self.rows):
            return False
        return 1 < len(values) <= len(cells) / 2 and max(map(len, values)) <= _MAX_NAME

    def _is_date(self, number: int) -> bool:
        cells = [cell for cell in self._column(number) if cell]
        return bool(cells) and all(_DATE.match(cell) for cell in cells)

    def _is_long(self, number: int) -> bool:
        """Whether most values of a column are longer than names, and nearly all are different."""
        cells = [cell for cell in self._column(number) if cell]
        return len(set(cells)) >= _FILLED * len(cells) and self._length(number) > _MAX_NAME / 2

    def _is_number(self, number: int) -> bool:
        cells = [cell for cell in self._column(number) if cell]
        return bool(cells) and all(_DECIMAL.fullmatch(cell) for cell in cells)

    def _is_varied(self, number: int) -> bool:
        """Whether numbers are no whole ones, such as counters."""
        return any("." in cell or "," in cell for cell in self._column(number))
