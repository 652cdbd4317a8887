"""Which columns of a table hold the texts and the label, and whether its first row names them.

Columns are those that the user names, or those with well-known names, or (unless `strict`) those whose content makes it clear:
the text is much longer than all else, and the label has few values. Without a header, one of several such columns is the label
if only its values do not come in blocks, as sources of the texts do (CoLA, the STS benchmark), or only its values are those of
well-known labels. Numbers with decimals are the label of single texts only if nothing else can be. A guess is reported, and so
are columns that are not used. In doubt an error lists the columns.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyseme.base.errors import UsageError, arg
from polyseme.text.labelled.column_content import ColumnContent
from polyseme.text.labelled.column_errors import no_label, one_class, unknown_columns
from polyseme.text.labelled.column_names import LABELS, PAIRS, SCORES, TEXTS, Request, column_number, is_header, listed

_log = logging.getLogger(__name__)
Record = tuple[int, Sequence[object]]
"""The first line of a row and its cells; a cell of JSON lines may be any value, all others are strings."""
_MISSING = frozenset({"NaN", "nan", "-nan", "#N/A", "#NA", "N/A", "n/a", "<NA>", "NULL", "null", r"\N"})
_UNUSED_SHOWN = 5  # columns that are not used


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


def choose_columns(path: str | Path, records: Sequence[Record], asked: Request, *, named: bool) -> Layout:
    """Return the columns of a table that begins with these records; `named`: its format has names, in the first record."""
    (line, opening), *others = records
    cells = [plain(cell) for cell in opening]
    if asked.text is None and asked.second is not None:
        raise UsageError(f"{path}: {arg('second', asked.second)} needs {arg('text')}; give both or neither")
    if asked.label is not None and not asked.labelled:
        raise UsageError(f"{path}: {arg('label', asked.label)} and labelled=False exclude each other; give one of them")
    header = named or (is_header(cells, asked.given.values()) if asked.header is None else asked.header)
    content = ColumnContent(cells, [row for _, given in others if (row := _fitted(given, cells)) is not None])
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
            raise UsageError(f"{path} has no rows but its first, {listed(map(repr, cells))}: it needs a row for each text")
        candidates = [] if asked.strict else [names[number] for number in content.labels(found, asked)]
        if "label" in missing and not candidates and (single := content.single_class(found)) is not None:
            raise UsageError(one_class(path, names, single, content, header=header))
        if "label" in missing and not candidates and content.has_no_label(found, asked):
            known = found.values() if "text" in asked.given else ()
            raise UsageError(no_label(path, cells, known, content, header=header))
        known_label = names[found["label"]] if "label" in found and "label" not in asked.given else None
        problem = unknown_columns(path, line, cells, missing, candidates, header=header, label=known_label, pairs=asked.pairs)
        raise UsageError(problem)
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


def _well_known(names: Sequence[str], roles: Sequence[str], content: ColumnContent, *, single: bool) -> dict[str, int]:
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
        settings = [arg("text"), arg("label"), *([] if layout.has_keys else [arg("header", not layout.header)])]
        advice = f"if that is wrong, give {', '.join(settings)}"
        warn_once(f"{path}: {begin}{how} {shown} ({'; '.join(filter(None, (unused, advice)))})")
    elif unused:
        warn_once(f"{path}: columns {shown} ({unused})")


@functools.lru_cache(maxsize=256)
def warn_once(message: str) -> None:
    """Warn once of a file that is read several times."""
    _log.warning("%s", message)
