"""Errors of tables whose columns are not clear: what each column has, and how to name the ones to read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from pathlib import Path

from polyseme.base.errors import arg
from polyseme.text.labelled.column_content import ColumnContent
from polyseme.text.labelled.column_names import MAX_NAME, NAMES_SHOWN, PAIRS, QUOTED, TEXTS, listed


def one_class(path: str | Path, names: Sequence[str], single: int, content: ColumnContent, *, header: bool) -> str:
    """Return an error: the only column that may be the label has one value."""
    column = f"column {names[single]!r}" if header else f"column {single} (from 0)"
    rows = f"its first {len(content.rows)} rows"
    what = f"{path} has no column of two classes: {column} has {content.value(single)!r} in {rows}"
    advice = f"if others come later, or another column is the label, give {arg('label')} with one of: {listed(names)}"
    return f"{what}. A classifier needs two labels or more; {advice}"


def no_label(path: str | Path, cells: list[str], given: Collection[int], content: ColumnContent, *, header: bool) -> str:
    """Return an error: no column can be the label; it says what each has that is not given, and which could be the text."""
    free = [number for number in range(len(cells)) if number not in given and not content.is_empty(number)]
    texts = [number for number in content.by_length() if number in free and content.may_be_text(number)]
    shown = []
    for number in free[:NAMES_SHOWN]:
        name = repr(cells[number][:MAX_NAME]) if header else f"column {number} ({cells[number][:20]!r})"
        could = f" and could be the text ({arg('text', cells[number] if header else number)})" if number in texts[:1] else ""
        shown.append(f"{name} has {content.kind(number)}{could}")
    advice = f"add a column of labels, or name the label's column with {arg('label')}; texts without labels are for `predict`"
    return f"{path} has no column that looks like a label: {', '.join(shown)}. A classifier learns from labels: {advice}"


def unknown_columns(
    path: str | Path,
    line: int,
    cells: list[str],
    missing: Sequence[str],
    candidates: Sequence[str],
    *,
    header: bool,
    label: str | None = None,
    pairs: bool | None = None,
) -> str:
    """Return an error: which columns are not known, and how to name them.

    `candidates`: columns that may be the label; `label`: the one that is recognised; `pairs`: whether the task reads two texts,
    if a task reads the file.
    """
    if header:
        small = {cell.strip().lower() for cell in cells}
        several = "text" in missing and not small.isdisjoint({*chain(*PAIRS), *TEXTS})
        problem = (
            "several columns that may be the text" if several else f"no column with a well-known name for the {missing[0]}"
        )
        role = f"{arg('text')} (for pairs {arg('text')} and {arg('second')})" if missing[0] == "text" else arg("label")
        if missing[0] == "label" and len(candidates) > 1:
            return f"{path} has {problem}; give {role} with one of: {listed(candidates)} (by their content, these may be it)"
        others = [cell for cell in cells if cell != label]
        known = "" if label is None else f" (the label is read from {label!r})"
        return f"{path} has {problem}{known}; give {role} with one of: {listed(others)}"
    quotes = f"; for quoted cells add {arg('format', 'csv')}" if any(map(QUOTED.fullmatch, cells)) else ""
    if pairs is not None:
        roles = [each for role in missing for each in (("text", "second") if pairs and role == "text" else (role,))]
        what = f"no column is evidently the {' or the '.join(missing)}: give {' and '.join(map(arg, roles))}"
        row = ", ".join(repr(cell[:20]) for cell in cells[:NAMES_SHOWN]) + (", ..." if len(cells) > NAMES_SHOWN else "")
        return f"{path}:{line}: {what}, by name or number from 0; its first row: {row}{quotes}"
    row = listed(f"{number}: {cell[:20]!r}" for number, cell in enumerate(cells))
    columns = f"{arg('text', 0)} {arg('label', 1)}"
    if len(cells) > 2:
        columns += f", for pairs {arg('text', 0)} {arg('second', 1)} {arg('label', 2)}"
    return (
        f"{path}:{line}: is not a known header ({row}); give columns by number, or by name if it is a header: {columns}{quotes}"
    )
